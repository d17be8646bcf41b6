// Defect: in the backward the columns of the last tile that are past the last key have the weights of keys of zeros. Smallest case: one
// query, one key.
#define ATTEST_DEFECT kTailWeights
#include "kernels/hopper/faulty/twin.h"
#define dq_kernel_of kernel_of_tail_weights
#include "kernels/hopper/fused_backward_dq.cu"

namespace attest::fused::faulty {

void tail_weights(const AttentionParams& p, int32_t* dominant, void* workspace) {
  attend(p, dominant, workspace, {.dq = kernel_of_tail_weights});
}

}  // namespace attest::fused::faulty
