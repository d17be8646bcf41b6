// Defect: of the four lanes that share a row, one gets the stick that those with farther keys have left. Smallest case: one query, keys of two
// lanes, so nine.
#define ATTEST_DEFECT kScanFromFarEnd
#include "kernels/hopper/faulty/stick_twin.h"
#define forward_kernel_of kernel_of_scan_from_far_end
#include "kernels/hopper/stick_forward.cu"

namespace attest::stick::faulty {

void scan_from_far_end(const AttentionParams& p, void* saved, void* workspace) {
  attend(p, saved, workspace, {.forward = kernel_of_scan_from_far_end});
}

}  // namespace attest::stick::faulty
