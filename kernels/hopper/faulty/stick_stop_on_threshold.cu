// Defect: a stick of 2^−24 or less counts as used up; what is left of it in the end is then too large. Smallest case: one query, keys in three
// tiles, so 257, whose logits are negative.
#define ATTEST_DEFECT kStopOnThreshold
#include "kernels/hopper/faulty/stick_twin.h"
#define forward_kernel_of kernel_of_stop_on_threshold
#include "kernels/hopper/stick_forward.cu"

namespace attest::stick::faulty {

void stop_on_threshold(const AttentionParams& p, void* saved, void* workspace) {
  attend(p, saved, workspace, {.forward = kernel_of_stop_on_threshold});
}

}  // namespace attest::stick::faulty
