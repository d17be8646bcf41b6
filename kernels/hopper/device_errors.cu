#include "kernels/hopper/device_errors.h"

#include <atomic>

#include "kernels/device/launch.h"

namespace attest {
namespace {

/// A capture forbids allocations to its thread for what they might do to other streams; this one does nothing to any.
class AllowAllocations {
 public:
  AllowAllocations() { check_cuda(cudaThreadExchangeStreamCaptureMode(&mode_), "cudaThreadExchangeStreamCaptureMode"); }
  ~AllowAllocations() { cudaThreadExchangeStreamCaptureMode(&mode_); }

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace

DeviceErrors::DeviceErrors(int device) {
  const CudaDevice here(device);
  const AllowAllocations allowed;
  void* memory = nullptr;
  check_cuda(cudaHostAlloc(&memory, sizeof(uint32_t), cudaHostAllocMapped | cudaHostAllocPortable), "cudaHostAlloc");
  on_host_ = static_cast<uint32_t*>(memory);
  *on_host_ = 0;
  check_cuda(cudaHostGetDevicePointer(&memory, on_host_, 0), "cudaHostGetDevicePointer");
  on_device_ = static_cast<uint32_t*>(memory);
}

DeviceErrors::~DeviceErrors() { cudaFreeHost(on_host_); }

std::optional<std::string> DeviceErrors::take() {
  const uint32_t raised = std::atomic_ref<uint32_t>(*on_host_).exchange(0);
  if (raised == 0) return std::nullopt;
  std::string sentence;
  if (raised & kAppendPastCapacity)
    sentence = "an earlier append would have passed the capacity of a KV cache, or began at a negative length: for the batch elements "
               "concerned nothing was written and the length stayed";
  if (raised & kLengthOutside)
    sentence += std::string(sentence.empty() ? "" : "; ") +
                "an earlier call found a length on the device outside [0, capacity of the KV cache] and took the nearer end for it";
  return sentence;
}

}  // namespace attest
