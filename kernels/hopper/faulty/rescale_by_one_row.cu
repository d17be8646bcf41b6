// Defect: one row of a warp decides for all whether what was summed is rescaled. Smallest case: two queries, keys in two tiles, the farther
// ones with larger logits.
#define ATTEST_DEFECT kRescaleByOneRow
#include "kernels/hopper/faulty/twin.h"
#define forward_kernel_of kernel_of_rescale_by_one_row
#include "kernels/hopper/fused_forward.cu"

namespace attest::fused::faulty {

void rescale_by_one_row(const AttentionParams& p, int32_t* dominant, void* workspace) {
  attend(p, dominant, workspace, {.forward = kernel_of_rescale_by_one_row});
}

}  // namespace attest::fused::faulty
