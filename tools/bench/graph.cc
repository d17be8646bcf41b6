#include "tools/bench/graph.h"

#ifndef ATTEST_HAS_CUDA
#include "harness/error.h"

namespace attest::bench {
std::function<double()> captured(const std::function<void()>&, int) {
  throw LaunchError("this build has no CUDA runtime to capture a graph with; build with nvcc");
}
}  // namespace attest::bench
#else
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <memory>

#include "kernels/device/launch.h"

namespace attest::bench {
namespace {

/// Makes a stream of Torch's pool the current one: the default stream can't be captured.
class OnSideStream {
 public:
  OnSideStream() : side_(guard_.getStreamFromGlobalPool(guard_.getDevice())), previous_(guard_.exchangeStream(side_)) {}
  ~OnSideStream() { guard_.exchangeStream(previous_); }
  OnSideStream(const OnSideStream&) = delete;
  OnSideStream& operator=(const OnSideStream&) = delete;
  const c10::Stream& stream() const { return side_; }

 private:
  c10::impl::VirtualGuardImpl guard_{c10::DeviceType::CUDA};
  c10::Stream side_, previous_;
};

cudaStream_t handle_of(const c10::Stream& stream) { return static_cast<cudaStream_t>(stream.native_handle()); }

class Graph {
 public:
  /// `record` puts work on `stream`, which has no other.
  Graph(c10::Stream stream, const std::function<void()>& record) : stream_(stream) {
    // Relaxed: an allocation that misses Torch's cache is no part of the graph, and harmless.
    check_cuda(cudaStreamBeginCapture(handle_of(stream_), cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture");
    try {
      record();
    } catch (...) {
      cudaStreamEndCapture(handle_of(stream_), &graph_);
      if (graph_ != nullptr) cudaGraphDestroy(graph_);
      cudaGetLastError();
      throw;
    }
    check_cuda(cudaStreamEndCapture(handle_of(stream_), &graph_), "cudaStreamEndCapture");
    check_cuda(cudaGraphInstantiate(&executable_, graph_, 0), "cudaGraphInstantiate");
  }
  ~Graph() {
    if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  double milliseconds() const {
    c10::Event start(c10::DeviceType::CUDA, c10::EventFlag::BACKEND_DEFAULT), stop(c10::DeviceType::CUDA, c10::EventFlag::BACKEND_DEFAULT);
    start.record(stream_);
    check_cuda(cudaGraphLaunch(executable_, handle_of(stream_)), "cudaGraphLaunch");
    stop.record(stream_);
    stop.synchronize();
    return start.elapsedTime(stop);
  }

 private:
  c10::Stream stream_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace

std::function<double()> captured(const std::function<void()>& run, int calls) {
  const OnSideStream side;
  for (int i = 0; i < 2; ++i) run();
  side.stream().synchronize();
  const auto graph = std::make_shared<Graph>(side.stream(), [&] {
    for (int i = 0; i < calls; ++i) run();
  });
  return [graph, calls] { return graph->milliseconds() / calls; };
}

}  // namespace attest::bench
#endif
