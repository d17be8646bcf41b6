#include "tools/bench/timer.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "harness/tensors.h"
#include "tools/bench/graph.h"

namespace attest::bench {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
/// On the GPU more than twice any level-2 cache (an H200 has 60 MB), and about 0.3 ms to write on an H200: the host is done
/// launching what is timed before the write ends, so its launch time stays out of the measurement.
constexpr int64_t kFlushCuda = 1024 * kMiB;
constexpr int64_t kFlushCpu = 64 * kMiB;

at::Tensor flush_buffer(Device device) {
  return at::zeros({device == Device::kCuda ? kFlushCuda : kFlushCpu},
                   at::TensorOptions().dtype(at::kByte).device(torch_device(device)));
}

c10::Stream current_stream() {
  const c10::impl::VirtualGuardImpl guard(c10::DeviceType::CUDA);
  return guard.getStream(guard.getDevice());
}

double time_cuda(at::Tensor& buffer, const std::function<void()>& run) {
  const c10::Stream stream = current_stream();
  c10::Event start(c10::DeviceType::CUDA, c10::EventFlag::BACKEND_DEFAULT);
  c10::Event stop(c10::DeviceType::CUDA, c10::EventFlag::BACKEND_DEFAULT);
  buffer.zero_();
  start.record(stream);
  run();
  stop.record(stream);
  stop.synchronize();
  return start.elapsedTime(stop);
}

int64_t peak_bytes_cuda(const std::function<void()>& run) {
  const c10::Stream stream = current_stream();
  c10::DeviceAllocator* allocator = c10::getDeviceAllocator(c10::DeviceType::CUDA);
  const auto aggregate = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  stream.synchronize();
  allocator->resetPeakStats(stream.device_index());
  const int64_t before = allocator->getDeviceStats(stream.device_index()).allocated_bytes[aggregate].current;
  run();
  stream.synchronize();
  return allocator->getDeviceStats(stream.device_index()).allocated_bytes[aggregate].peak - before;
}

bool cuda_works() {
  try {
    return at::ones({1}, at::TensorOptions().device(torch_device(Device::kCuda))).item<float>() == 1.0F;
  } catch (const std::exception&) {
    return false;
  }
}

double time_cpu(at::Tensor& buffer, const std::function<void()>& run) {
  buffer.add_(1);
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Timer timer_of(Device device) {
  at::Tensor buffer = flush_buffer(device);
  if (device == Device::kCpu)
    return {[buffer](const auto& run) mutable { return time_cpu(buffer, run); }, nullptr,
            [](const auto& run) { return run(), std::optional<int64_t>(); }, [] { return true; }};
  return {[buffer](const auto& run) mutable { return time_cuda(buffer, run); }, [](const auto& run) { return captured(run); },
          [](const auto& run) { return std::optional(peak_bytes_cuda(run)); }, cuda_works};
}

double percentile(std::vector<double> samples, double p) {
  std::sort(samples.begin(), samples.end());
  const double at = p * static_cast<double>(samples.size() - 1);
  const auto below = static_cast<size_t>(std::floor(at));
  const size_t above = std::min(below + 1, samples.size() - 1);
  return samples[below] + (at - static_cast<double>(below)) * (samples[above] - samples[below]);
}

}  // namespace attest::bench
