// How one run is timed on a device.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "harness/attention_problem.h"

namespace attest::bench {

struct Timer {
  /// Milliseconds that `run` takes, work on the device included; the cache is flushed first.
  std::function<double(const std::function<void()>& run)> time;
  /// As `time`, but of a run replayed from a CUDA graph (see captured()); empty where there are none.
  std::function<std::function<double()>(const std::function<void()>& run)> captured;
  /// The most bytes in use during `run` above those before it; nothing where no allocator counts them.
  std::function<std::optional<int64_t>(const std::function<void()>& run)> peak_bytes;
  /// False when an earlier failure has left the device unusable in this process.
  std::function<bool()> healthy;
};

/// The steady clock on the CPU; events on the current stream on the GPU, which needs load_cuda() before.
Timer timer_of(Device device);

/// The value below which the share `p` (0 … 1) of the samples lies, linear between order statistics. `samples` not empty.
double percentile(std::vector<double> samples, double p);

}  // namespace attest::bench
