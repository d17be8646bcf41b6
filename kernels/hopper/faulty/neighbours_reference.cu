// Defect: the reference that logits are taken relative to rises in a row when it does in any row of the warp. Smallest case: two queries,
// keys in two tiles.
#define ATTEST_DEFECT kNeighboursReference
#include "kernels/hopper/faulty/twin.h"
#define forward_kernel_of kernel_of_neighbours_reference
#include "kernels/hopper/fused_forward.cu"

namespace attest::fused::faulty {

void neighbours_reference(const AttentionParams& p, int32_t* dominant, void* workspace) {
  attend(p, dominant, workspace, {.forward = kernel_of_neighbours_reference});
}

}  // namespace attest::fused::faulty
