// Defects for compute-sanitizer: a race on shared memory, and a read of memory that nothing wrote. Both give finite numbers that
// are thrown away, so no law sees them; racecheck and initcheck must.
#include "kernels/faulty/planted.h"

namespace attest::faulty {
namespace {

__global__ void race(float* out) {
  __shared__ float cell;
  cell = static_cast<float>(threadIdx.x);
  if (threadIdx.x == 0) *out = cell;  // no barrier between the writes and the read
}

__global__ void read_unwritten(const float* in, float* out) { *out = *in; }

const char* result() {
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

}  // namespace

const char* launch_race(float* out, void* stream) {
  race<<<1, 128, 0, static_cast<cudaStream_t>(stream)>>>(out);
  return result();
}

const char* launch_read_unwritten(const float* in, float* out, void* stream) {
  read_unwritten<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(in, out);
  return result();
}

}  // namespace attest::faulty
