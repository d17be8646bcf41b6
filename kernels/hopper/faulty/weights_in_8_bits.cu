// Defect: weights are rounded to 8 bits, of which 3 follow the leading one, before they meet the values. Smallest case: one query, two keys.
#define ATTEST_DEFECT kWeightsIn8Bits
#include "kernels/hopper/faulty/twin.h"
#define forward_kernel_of kernel_of_weights_in_8_bits
#include "kernels/hopper/fused_forward.cu"

namespace attest::fused::faulty {

void weights_in_8_bits(const AttentionParams& p, int32_t* dominant, void* workspace) {
  attend(p, dominant, workspace, {.forward = kernel_of_weights_in_8_bits});
}

}  // namespace attest::fused::faulty
