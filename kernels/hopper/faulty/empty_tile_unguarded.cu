// Defect: a tile in which a row sees no key is taken for one with the largest logit −∞, and −∞ − (−∞) is NaN. Smallest case: one query,
// one key that is padded.
#define ATTEST_DEFECT kEmptyTileUnguarded
#include "kernels/hopper/faulty/twin.h"
#define forward_kernel_of kernel_of_empty_tile_unguarded
#include "kernels/hopper/fused_forward.cu"

namespace attest::fused::faulty {

void empty_tile_unguarded(const AttentionParams& p, int32_t* dominant, void* workspace) {
  attend(p, dominant, workspace, {.forward = kernel_of_empty_tile_unguarded});
}

}  // namespace attest::fused::faulty
