// Defect: dq begins at the farthest tile there is, not at the farthest that the forward visited. What nobody wrote are NaNs here, so that the
// twin fails every time. Smallest case: one query, keys in three tiles, so 257, whose stick is used up after two.
#define ATTEST_DEFECT kSnapshotsNeverWritten
#include "kernels/device/launch.h"
#include "kernels/hopper/faulty/stick_twin.h"
#define dq_kernel_of kernel_of_snapshots_never_written
#include "kernels/hopper/stick_backward_dq.cu"

namespace attest::stick::faulty {

void snapshots_never_written(const AttentionParams& p, void* saved, void* workspace) {
  if (saved != nullptr)
    check_cuda(cudaMemsetAsync(saved, 0xFF, saved_bytes(p), static_cast<cudaStream_t>(p.stream)), "cudaMemsetAsync");
  attend(p, saved, workspace, {.dq = kernel_of_snapshots_never_written});
}

}  // namespace attest::stick::faulty
