// Defect: how long segments of keys are follows from the batch size. Smallest case: two batch elements, one query, keys in two segments, so 513.
#define ATTEST_DEFECT kSegmentsByBatch
#include "kernels/hopper/faulty/twin.h"
#define forward_kernel_of kernel_of_segments_by_batch
#include "kernels/hopper/fused_forward.cu"

namespace attest::fused::faulty {

void segments_by_batch(const AttentionParams& p, int32_t* dominant, void* workspace) {
  attend(p, dominant, workspace, {.forward = kernel_of_segments_by_batch});
}

}  // namespace attest::fused::faulty
