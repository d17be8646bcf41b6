// Defect: a block that asks whether its sticks are used up when one tile is left stops there. Smallest case: one query, keys in three tiles, so
// 257, all with large negative logits.
#define ATTEST_DEFECT kStopOneTileEarly
#include "kernels/hopper/faulty/stick_twin.h"
#define forward_kernel_of kernel_of_stop_one_tile_early
#include "kernels/hopper/stick_forward.cu"

namespace attest::stick::faulty {

void stop_one_tile_early(const AttentionParams& p, void* saved, void* workspace) {
  attend(p, saved, workspace, {.forward = kernel_of_stop_one_tile_early});
}

}  // namespace attest::stick::faulty
