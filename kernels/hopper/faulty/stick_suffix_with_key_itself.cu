// Defect: in dq what a key's farther keys are worth includes the key itself. Smallest case: one query, one key.
#define ATTEST_DEFECT kSuffixWithKeyItself
#include "kernels/hopper/faulty/stick_twin.h"
#define dq_kernel_of kernel_of_suffix_with_key_itself
#include "kernels/hopper/stick_backward_dq.cu"

namespace attest::stick::faulty {

void suffix_with_key_itself(const AttentionParams& p, void* saved, void* workspace) {
  attend(p, saved, workspace, {.dq = kernel_of_suffix_with_key_itself});
}

}  // namespace attest::stick::faulty
