// For tests that need a GPU: why they are skipped, a stream, a captured graph.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <optional>
#include <string>

#include "harness/tensors.h"
#include "kernels/device/launch.h"

namespace attest {

/// Why kernels for compute capability `major`.x (0: for any) don't run here, or nothing. Loads libtorch's CUDA library first.
inline std::optional<std::string> why_no_gpu_of(int major = 0) {
  if (auto why = load_cuda()) return why;
  int here = 0;
  check_cuda(cudaDeviceGetAttribute(&here, cudaDevAttrComputeCapabilityMajor, 0), "cudaDeviceGetAttribute");
  if (major != 0 && here != major) return "the GPU has compute capability " + std::to_string(here) + ".x";
  return std::nullopt;
}

inline void wait_for_gpu() { check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); }

/// One that doesn't wait for the default stream.
class Stream {
 public:
  Stream() { check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

/// What `launch` puts on `stream`, to be replayed there.
class CapturedGraph {
 public:
  CapturedGraph(cudaStream_t stream, const std::function<void()>& launch) : stream_(stream) {
    check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    launch();
    check_cuda(cudaStreamEndCapture(stream, &graph_), "cudaStreamEndCapture");
    check_cuda(cudaGraphInstantiate(&executable_, graph_, 0), "cudaGraphInstantiate");
  }
  ~CapturedGraph() {
    cudaGraphExecDestroy(executable_);
    cudaGraphDestroy(graph_);
  }
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;
  void replay() const { check_cuda(cudaGraphLaunch(executable_, stream_), "cudaGraphLaunch"); }

 private:
  cudaStream_t stream_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace attest
