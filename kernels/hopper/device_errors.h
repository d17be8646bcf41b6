// Errors that only a kernel can see, such as a length on the device that doesn't fit its buffer: the kernel raises a flag and goes on
// safely, and the next call reports it. The flag lies in host memory that the device can write, so that reading it waits for nothing;
// it is certain to be seen once the stream has been synchronised.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace attest {

/// Bits of the flag.
constexpr uint32_t kLengthOutside = 1, kAppendPastCapacity = 2;

class DeviceErrors {
 public:
  /// Allocates 4 bytes of pinned memory; also while a graph is being captured. Throws LaunchError.
  explicit DeviceErrors(int device);
  ~DeviceErrors();
  DeviceErrors(const DeviceErrors&) = delete;
  DeviceErrors& operator=(const DeviceErrors&) = delete;

  /// For kernels on `device`.
  uint32_t* flag() const { return on_device_; }
  /// What was raised since the last call, in a sentence, or nothing.
  std::optional<std::string> take();

 private:
  uint32_t* on_host_ = nullptr;
  uint32_t* on_device_ = nullptr;
};

}  // namespace attest
