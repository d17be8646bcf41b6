// A plain softmax and a plain stick-breaking attention with places where a defect can be planted. Without one, both are right:
// a test says so, and kernels/plain/ registers them. fp32 arithmetic, one thread, any strides, one sequence after another; hidden
// keys are never read.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "harness/tensors.h"
#include "harness/variant.h"

namespace attest::faulty {

/// The definition of visibility, by tensors.
bool visible_by_definition(const Inputs& in, int64_t b, int64_t i, int64_t j);

/// Each default is what a right kernel does.
struct SoftmaxHooks {
  std::function<int64_t(const AttentionProblem&, int64_t head_q)> kv_head =
      [](const AttentionProblem& p, int64_t h) { return p.kv_head(h); };
  std::function<bool(const Inputs&, int64_t b, int64_t i, int64_t j)> visible = visible_by_definition;
  /// Into how many parts the keys of a row are cut; each is summed alone, then the sums are added.
  std::function<int64_t(const Inputs&)> splits = [](const Inputs&) { return int64_t{1}; };
  /// The n-th key that is visited (n = 0 … Skv − 1) when a row of batch element b is summed.
  std::function<int64_t(const Inputs&, int64_t b, int64_t n)> visited = [](const Inputs&, int64_t, int64_t n) { return n; };
  /// The score of a hidden key: −∞, or a sentinel.
  float hidden_score = -std::numeric_limits<float>::infinity();
  /// The row maximum is taken over the visible keys, or over all.
  bool maximum_over_all_keys = false;
  /// A row without a visible key gives 0 and −∞, or what 0/0 gives.
  bool guards_empty_rows = true;
  bool guards_empty_rows_in_backward = true;
  /// Keys that are not there but are summed, each with score 0 and v = 0.
  std::function<int64_t(const Inputs&)> phantom_keys = [](const Inputs&) { return int64_t{0}; };
};
Outputs naive_softmax(const Inputs& in, const SoftmaxHooks& hooks = {});

struct StickBreakingHooks {
  bool one_minus_beta = false;  // 1 − β by subtraction, and dz = a − β(total − nearer sums)
  bool drops_drem = false;      // the gradient of rem is ignored
  bool oldest_first = false;    // the stick is broken from the far end
};
Outputs naive_stickbreaking(const Inputs& in, const StickBreakingHooks& hooks = {});

/// The record all faulty variants start from: CPU, every case, every promise, forward_error(2) with fp32 sums, of gradients fp64.
KernelVariant faulty_variant(const std::string& name, Op op, const std::string& summary, const std::string& caught_by);

}  // namespace attest::faulty
