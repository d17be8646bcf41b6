// Sequences of different lengths, on the device: kernels read them when they run, so that a CUDA graph can follow a growing cache.
#pragma once

#include <cstdint>

namespace attest::portable {

/// Nothing set: each batch element is one sequence and fills its rows. What lies outside the rows is clamped to them.
struct Lengths {
  /// Packed: batch is 1, sequence i has rows [begins[i], begins[i + 1]) of the queries and of the keys; int32 [count + 1] each.
  const int32_t *begins_q = nullptr, *begins_kv = nullptr;
  /// Or batch element b uses its first used[b] rows; int32 [batch] each; null: all.
  const int32_t *used_q = nullptr, *used_kv = nullptr;
  int64_t count = 0;              // packed: how many sequences
  int64_t most_q = 0, most_kv = 0;  // packed: no sequence is longer; 0: the rows of the tensors

  bool packed() const { return begins_q != nullptr; }
  bool given() const { return packed() || used_q != nullptr || used_kv != nullptr; }
};

}  // namespace attest::portable
