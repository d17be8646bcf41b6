// Defect: in dq 1 − β is a difference, which keeps no digit once β is nearly 1 (logits above 11). Smallest case: one query, one key.
#define ATTEST_DEFECT kOneMinusBeta
#include "kernels/hopper/faulty/stick_twin.h"
#define dq_kernel_of kernel_of_one_minus_beta
#include "kernels/hopper/stick_backward_dq.cu"

namespace attest::stick::faulty {

void one_minus_beta(const AttentionParams& p, void* saved, void* workspace) {
  attend(p, saved, workspace, {.dq = kernel_of_one_minus_beta});
}

}  // namespace attest::stick::faulty
