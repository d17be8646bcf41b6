// How much stickbreaking.cuda.fused leaves from its forward for its backward. A function of sizes alone, whatever their type, so
// that Torch can be told the shape before any kernel runs.
#pragma once

#include <cstdint>

namespace attest::stick {

constexpr int64_t kMostSaved = int64_t{512} << 20;  // bytes of sticks; where there would be more, nothing is saved

/// The stick of each query at every 64th key, fp32; queries and keys are padded to multiples of 128. `heads`: batch · query
/// heads.
template <class Int>
Int saved_sticks(const Int& heads, const Int& seqlen_q, const Int& seqlen_kv) {
  return heads * ((seqlen_q + 127) / 128 * 128) * ((seqlen_kv + 127) / 128 * 2);
}
/// Blocks of 64 queries, of each of which an int32 is saved.
template <class Int>
Int saved_blocks(const Int& heads, const Int& seqlen_q) {
  return heads * ((seqlen_q + 127) / 128 * 2);
}
/// Both, each at a multiple of 256 bytes; 0 where the sticks alone exceed kMostSaved.
template <class Int>
Int saved_bytes_of(const Int& heads, const Int& seqlen_q, const Int& seqlen_kv) {
  const Int sticks = saved_sticks(heads, seqlen_q, seqlen_kv) * 4;
  if (sticks > kMostSaved) return Int(0);
  return (sticks + 255) / 256 * 256 + (saved_blocks(heads, seqlen_q) * 4 + 255) / 256 * 256;
}

}  // namespace attest::stick
