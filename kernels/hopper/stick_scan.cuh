// Sticks in the accumulators of a tile of scores. Keys lie in them so that a thread owns runs of consecutive ones: in a sub-tile of
// 8·kRun keys, accumulator 4b + 2h + e of lane x of a quad is row h and key 2·kRun·x + kRun·e + b (interleaved_map).
#pragma once

#include "kernels/hopper/stick_kernels.h"

namespace attest::stick {

/// 1/x by the special-function unit, within 1 ulp, exact at 1; subnormals count as 0.
__device__ __forceinline__ float reciprocal_fast(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// β = σ(z) and 1 − β = σ(−z), both of small relative error, without a subtraction. Score −∞: exactly 0 and 1.
struct Share {
  float beta, rest;
};
__device__ __forceinline__ Share share_of(float score, float scale) {
  const float u = hopper::exp2_fast(fminf(score * scale, 126.0F)), rest = reciprocal_fast(1.0F + u);
  if constexpr (kDefect == Defect::kOneMinusBeta) return {u * rest, 1.0F - u * rest};
  return {u * rest, rest};
}

/// Sets the entries of keys past last[h], the last that row h may see, to −∞. `first_key`: the tile's.
template <int kRun, int kSize>
__device__ __forceinline__ void hide(float (&s)[kSize], const int (&last)[2], int first_key, int lane) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int limit = last[h] - first_key - 2 * kRun * lane;
#pragma unroll
    for (int b = 0; b < kSize / 4; ++b)
#pragma unroll
      for (int e = 0; e < 2; ++e)
        if (b / kRun * 8 * kRun + kRun * e + b % kRun > limit) s[4 * b + 2 * h + e] = -INFINITY;
  }
}

/// Sets the entries of keys that are not kept to −∞. `words`: the tile's bits.
template <int kRun, int kSize>
__device__ __forceinline__ void hide_padded(float (&s)[kSize], const uint32_t* __restrict__ words, int lane) {
#pragma unroll
  for (int u = 0; u < kSize / 4 / kRun; ++u) {
    const int first = 8 * kRun * u + 2 * kRun * lane;
    const uint32_t bits = words[first / 32] >> first % 32;
#pragma unroll
    for (int b = 0; b < kRun; ++b)
#pragma unroll
      for (int e = 0; e < 2; ++e)
        if (!(bits >> (kRun * e + b) & 1)) s[4 * (kRun * u + b) + e] = s[4 * (kRun * u + b) + 2 + e] = -INFINITY;
  }
}

/// The product over the lanes of a quad, (0·1)·(2·3), and over those with nearer keys than this one's.
struct QuadProduct {
  float all, nearer;
};
__device__ __forceinline__ QuadProduct quad_product(float x, int lane) {
  const float other = __shfl_xor_sync(~0U, x, 1), pair = x * other, other_pair = __shfl_xor_sync(~0U, pair, 2);
  if constexpr (kDefect == Defect::kScanFromFarEnd)
    return {pair * other_pair, (lane & 1 ? other : 1.0F) * (lane < 2 ? 1.0F : other_pair)};
  return {pair * other_pair, (lane & 1 ? 1.0F : other) * (lane < 2 ? other_pair : 1.0F)};
}

/// A lane's 8 keys in a row, ascending: scores → shares of the stick before the nearest of them; returns what is left of it after the
/// farthest.
__device__ __forceinline__ float break_run(float (&s)[8], float scale) {
  float own = 1.0F;
#pragma unroll
  for (int i = 7; i >= 0; --i) {
    const Share share = share_of(s[i], scale);
    s[i] = share.beta * own;
    own *= share.rest;
  }
  return own;
}

/// Scores of 128 keys → weights A within the segment, times kWeightScale. stick[h]: of row h, from before the tile to after it;
/// middle[h]: before the farther 64 keys. Sub-tile after sub-tile of 32 keys, so that one's products run beside another's shares.
template <class Element>
__device__ __forceinline__ void break_tile(float (&s)[64], float scale, float (&stick)[2], float (&middle)[2]) {
  const int lane = fused::lane_in_quad();
#pragma unroll
  for (int u = 3; u >= 0; --u)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float run[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) run[i] = s[16 * u + i % 4 * 4 + 2 * h + i / 4];
      const QuadProduct quad = quad_product(break_run(run, scale), lane);
      const float factor = stick[h] * quad.nearer * kWeightScale<Element>;
      if (u == 1) middle[h] = stick[h];
      stick[h] *= quad.all;
#pragma unroll
      for (int i = 0; i < 8; ++i) s[16 * u + i % 4 * 4 + 2 * h + i / 4] = run[i] * factor;
    }
}

}  // namespace attest::stick
