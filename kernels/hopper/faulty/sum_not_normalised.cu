// Defect: the mean of dP is not divided by the sum of the weights that it was made with, which is off by percents at logits of 1e5. Smallest
// case: one query, two keys.
#define ATTEST_DEFECT kSumNotNormalised
#include "kernels/hopper/faulty/twin.h"
#define dq_kernel_of kernel_of_sum_not_normalised
#include "kernels/hopper/fused_backward_dq.cu"

namespace attest::fused::faulty {

void sum_not_normalised(const AttentionParams& p, int32_t* dominant, void* workspace) {
  attend(p, dominant, workspace, {.dq = kernel_of_sum_not_normalised});
}

}  // namespace attest::fused::faulty
