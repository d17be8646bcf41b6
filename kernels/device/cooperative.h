// A block of 256 threads, as code that can also be run on the host: work is cut into phases, each a function of the thread's
// number and its own state, with a barrier after each. On the device a phase runs once per thread; on the host a loop runs it
// for every thread. So the tests hold the very code of a kernel against its twin, without a GPU; races alone escape them.
// Memory shared by the threads is written and read in different phases.
#pragma once

#include <vector>

#include "kernels/device/host_device.h"

namespace attest::fixed_order {

inline constexpr int kThreads = 256;

struct NoState {};

/// State: what a thread keeps from phase to phase, in registers.
template <class State>
struct DeviceBlock {
  State state;

  template <class Phase>
  ATTEST_HOST_DEVICE void each(Phase phase) {
#ifdef __CUDA_ARCH__
    phase(static_cast<int>(threadIdx.x), state);
    __syncthreads();
#else
    static_cast<void>(phase);
#endif
  }
};

template <class State>
struct HostBlock {
  std::vector<State> states = std::vector<State>(kThreads);

  template <class Phase>
  void each(Phase phase) {
    for (int thread = 0; thread < kThreads; ++thread) phase(thread, states[static_cast<size_t>(thread)]);
  }
};

/// combine(t, t + half) for half = 128, 64, …, 1 and every t < half: a halving tree over the block's threads.
template <class Block, class Combine>
ATTEST_HOST_DEVICE void halving_tree(Block& block, Combine combine) {
  for (int half = kThreads / 2; half > 0; half /= 2) {
    block.each([&](int thread, auto&) {
      if (thread < half) combine(thread, thread + half);
    });
  }
}

}  // namespace attest::fixed_order
