// Defect: a kernel writes far outside every allocation, which breaks the CUDA context of its process. Smallest case: any.
#include "kernels/faulty/out_of_bounds.h"

namespace attest::faulty {
namespace {

__global__ void write_outside(float* p) { p[int64_t{1} << 40] = 1.0F; }

}  // namespace

const char* launch_out_of_bounds(float* buffer, void* stream) {
  write_outside<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(buffer);
  cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

}  // namespace attest::faulty
