// Runs in a CUDA graph: what the device takes for them when no launch is waited for, as a serving loop replays its steps.
#pragma once

#include <functional>

namespace attest::bench {

/// Runs of a graph, unless said otherwise; the time of one is that of the graph, divided by their number.
inline constexpr int kCallsInGraph = 20;

/// Captures `calls` calls of `run`, one after another, on a stream of their own, and returns what replays them: the
/// milliseconds a call. The cache is not flushed: after the first call it holds what fits. Called twice before that, so that all
/// that `run` allocates is at hand. Needs load_cuda() before. Throws LaunchError where `run` can't be captured, or in a
/// build without nvcc.
std::function<double()> captured(const std::function<void()>& run, int calls = kCallsInGraph);

}  // namespace attest::bench
