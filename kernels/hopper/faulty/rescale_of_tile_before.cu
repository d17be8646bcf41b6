// Defect: where a row sees no key of a tile, what was summed is rescaled again as it was for the tile before. Smallest case: one query, keys in two
// tiles, the farther all padding.
#define ATTEST_DEFECT kRescaleOfTileBefore
#include "kernels/hopper/faulty/twin.h"
#define forward_kernel_of kernel_of_rescale_of_tile_before
#include "kernels/hopper/fused_forward.cu"

namespace attest::fused::faulty {

void rescale_of_tile_before(const AttentionParams& p, int32_t* dominant, void* workspace) {
  attend(p, dominant, workspace, {.forward = kernel_of_rescale_of_tile_before});
}

}  // namespace attest::fused::faulty
