// Defect: whether the tiles of keys are taken from the nearest or from the farthest follows from the block's index. Smallest case: two
// batch elements, one query, keys in two tiles.
#define ATTEST_DEFECT kTilesByBlock
#include "kernels/hopper/faulty/twin.h"
#define forward_kernel_of kernel_of_tiles_by_block
#include "kernels/hopper/fused_forward.cu"

namespace attest::fused::faulty {

void tiles_by_block(const AttentionParams& p, int32_t* dominant, void* workspace) {
  attend(p, dominant, workspace, {.forward = kernel_of_tiles_by_block});
}

}  // namespace attest::fused::faulty
