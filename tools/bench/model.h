// How long a step of the small decoder (tools/model/) takes, with a cache and without, and what part of it is attention.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "harness/attention_problem.h"
#include "tools/model/decoder.h"

namespace attest::bench {

/// Milliseconds, medians. Absent: there was no GPU to capture a graph on.
struct StepTimes {
  double events = 0;            // launches included, where the device waits for them; the level-2 cache empty
  std::optional<double> graph;  // replayed from a CUDA graph
};

/// One prompt and batch size.
struct ModelRow {
  int64_t prompt = 0, batch = 1;
  StepTimes cached;      // one token a sequence after `prompt` tokens in the cache
  StepTimes recomputed;  // the same logits by an uncached forward over prompt + 1 tokens
  StepTimes attention;   // of `cached`: appending to the cache and attention, in all layers
};

struct ModelBenchPlan {
  model::Shape shape;
  Dtype dtype = Dtype::kBFloat16;
  Device device = Device::kCuda;
  std::vector<int64_t> prompts, batches;
  int repeats = 30;  // of cached steps; a tenth of it, at least 3, of recomputed ones
};

/// `done` hears of each row.
std::vector<ModelRow> bench_model(const ModelBenchPlan& plan, const std::function<void(const ModelRow&)>& done);

}  // namespace attest::bench
