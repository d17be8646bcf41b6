// Defect: dq knows nothing of drem. Smallest case: one query, one key, drem.
#define ATTEST_DEFECT kRemainderDropped
#include "kernels/hopper/faulty/stick_twin.h"
#define dq_kernel_of kernel_of_remainder_dropped
#include "kernels/hopper/stick_backward_dq.cu"

namespace attest::stick::faulty {

void remainder_dropped(const AttentionParams& p, void* saved, void* workspace) {
  attend(p, saved, workspace, {.dq = kernel_of_remainder_dropped});
}

}  // namespace attest::stick::faulty
