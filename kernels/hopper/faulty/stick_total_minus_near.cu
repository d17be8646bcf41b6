// Defect: in dq what a query's farther keys are worth is that of all keys up to the tile's nearest without that of the nearer ones, which cancels
// where one key has nearly all of the weight. Smallest case: one query, one key.
#define ATTEST_DEFECT kTotalMinusNear
#include "kernels/hopper/faulty/stick_twin.h"
#define dq_kernel_of kernel_of_total_minus_near
#include "kernels/hopper/stick_backward_dq.cu"

namespace attest::stick::faulty {

void total_minus_near(const AttentionParams& p, void* saved, void* workspace) {
  attend(p, saved, workspace, {.dq = kernel_of_total_minus_near});
}

}  // namespace attest::stick::faulty
