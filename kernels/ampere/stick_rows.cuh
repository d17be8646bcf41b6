// What the two backward kernels of stick-breaking share: hidden keys, what a row's remainder is worth, where a row's sticks lie.
#pragma once

#include "kernels/ampere/kernels.h"
#include "kernels/ampere/slabs.cuh"
#include "kernels/hopper/stick_backward_tiles.cuh"
#include "kernels/hopper/stick_scan_backward.cuh"

namespace attest::portable {

/// drem·rem of a row: F before its farthest key.
__device__ __forceinline__ float remainder_worth(const BackwardArgs& a, const Sequence& s, int head, int row) {
  if (a.dlse.data == nullptr || row >= s.n_q) return 0.0F;
  return a.dlse.data[a.dlse.strides.at(s.batch, head, s.q_begin + row)] * a.lse.data[a.lse.strides.at(s.batch, head, s.q_begin + row)];
}

/// In `sticks` and `far`.
__device__ __forceinline__ int64_t tile_row(const BackwardArgs& a, const Sequence& s, int head, int tile, int row) {
  return (static_cast<int64_t>(a.problem.of_all(s, head)) * a.key_tiles + tile) * a.problem.seqlen_q + s.q_begin + row;
}

/// z: this warp's 16 of the 64 queries from first_row on, the 64 keys from first_key on.
__device__ __forceinline__ void hide_keys(const Problem& p, const Sequence& s, float (&z)[32], int first_row, int first_key) {
  if (first_key + kTile - 1 > p.last_visible(s, first_row + warp_row())) {
    const int row = first_row + fused::row_in_warpgroup();
    const int last[2] = {p.last_visible(s, row), p.last_visible(s, row + 8)};
    stick::hide<8>(z, last, first_key, fused::lane_in_quad());
  }
  if (p.keep == nullptr) return;
  uint32_t words[2];
  p.kept_words(s, first_key, words);
  stick::hide_padded<8>(z, words, fused::lane_in_quad());
}

}  // namespace attest::portable
