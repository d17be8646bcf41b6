// Defect: no row has a dominant key, so that its dP is not what the others are taken relative to. Smallest case: one query that sees one
// key and has no dlse; its gradients must be 0.
#define ATTEST_DEFECT kDominantIgnored
#include "kernels/hopper/faulty/twin.h"
#define launch_rows kernel_of_dominant_ignored
#include "kernels/hopper/fused_backward_rows.cu"

namespace attest::fused::faulty {

void dominant_ignored(const AttentionParams& p, int32_t* dominant, void* workspace) {
  attend(p, dominant, workspace, {.rows = kernel_of_dominant_ignored});
}

}  // namespace attest::fused::faulty
