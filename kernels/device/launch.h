// Launching from host code of a .cu file: the device, the grid, and the check that follows every launch.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "harness/error.h"

namespace attest {

/// Throws LaunchError with the kernel's name and CUDA's text.
inline void check_cuda(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  throw LaunchError(std::string(what) + ": " + cudaGetErrorName(status) + " (" + cudaGetErrorString(status) + ")");
}
inline void check_launch(const char* kernel) { check_cuda(cudaGetLastError(), kernel); }

/// Blocks of a one-dimensional grid for `count` pieces of work; kernels loop where there are more.
inline unsigned grid_of(int64_t count) {
  return static_cast<unsigned>(std::min<int64_t>(count, std::numeric_limits<int32_t>::max()));
}

/// The runtime linked here is not Torch's: it is told the device itself, and the caller's device is restored.
class CudaDevice {
 public:
  explicit CudaDevice(int device) {
    check_cuda(cudaGetDevice(&previous_), "cudaGetDevice");
    check_cuda(cudaSetDevice(device), "cudaSetDevice");
  }
  ~CudaDevice() { cudaSetDevice(previous_); }
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

 private:
  int previous_ = 0;
};

}  // namespace attest
