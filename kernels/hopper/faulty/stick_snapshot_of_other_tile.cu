// Defect: the forward exchanges the sticks that it saves for the two halves of a tile. Smallest case: one query, keys in both halves, so 65.
#define ATTEST_DEFECT kSnapshotOfOtherTile
#include "kernels/hopper/faulty/stick_twin.h"
#define forward_kernel_of kernel_of_snapshot_of_other_tile
#include "kernels/hopper/stick_forward.cu"

namespace attest::stick::faulty {

void snapshot_of_other_tile(const AttentionParams& p, void* saved, void* workspace) {
  attend(p, saved, workspace, {.forward = kernel_of_snapshot_of_other_tile});
}

}  // namespace attest::stick::faulty
