// Sticks and their gradients in the accumulators of 64 queries × 64 keys. Accumulator 4b + 2h + e of lane x of a quad is row h and key
// 16x + 8e + b of the tile; within a row, number 8e + b.
#pragma once

#include "kernels/hopper/stick_scan.cuh"

namespace attest::stick {

__device__ constexpr int at_row(int h, int i) { return i % 8 * 4 + 2 * h + i / 8; }

/// Row h: scores → β in s, 1 − β in `rest`; gives the stick before the thread's nearest key, from that before the tile's.
template <int h>
__device__ __forceinline__ float break_row(float (&s)[32], float (&rest)[16], float scale, float stick, int lane) {
  float own = 1.0F;
#pragma unroll
  for (int i = 15; i >= 0; --i) {
    float& x = s[at_row(h, i)];
    const Share share = share_of(x, scale);
    x = share.beta;
    rest[i] = share.rest;
    own *= share.rest;
  }
  return stick * quad_product(own, lane).nearer;
}

/// Row h: dP → a = A·dP in `dp`, their sum, and A rounded, times kWeightScale, in `weights` (null: not wanted).
template <class Element, int h>
__device__ __forceinline__ float weigh_row(const float (&beta)[32], const float (&rest)[16], float (&dp)[32], float stick,
                                           uint32_t* weights) {
  float sum = 0.0F, high[8];
#pragma unroll
  for (int i = 15; i >= 0; --i) {
    const float weight = beta[at_row(h, i)] * stick;
    stick *= rest[i];
    dp[at_row(h, i)] *= weight;
    sum += dp[at_row(h, i)];
    if (weights == nullptr) continue;
    if (i >= 8) high[i - 8] = weight * kWeightScale<Element>;
    if (i < 8) weights[i] = hopper::pack<Element>(weight * kWeightScale<Element>, high[i]);
  }
  return sum;
}

/// What rounds a sum to 16 bits, half up: 7 bits follow the leading one.
__device__ __forceinline__ float in_16_bits(float x) { return __uint_as_float((__float_as_uint(x) + 0x8000U) & 0xFFFF0000U); }

/// Row h: a → dz = (1 − β)·a − β·F in `dp`, F = Σ of a over farther keys, from `far`, that before the tile's farthest key, which
/// becomes that after its nearest. `sum`: of the thread's a.
template <int h>
__device__ __forceinline__ void dlogits_row(const float (&beta)[32], const float (&rest)[16], float (&dp)[32], float sum, float& far,
                                            int lane) {
  const float other = __shfl_xor_sync(~0U, sum, 1), pair = sum + other, other_pair = __shfl_xor_sync(~0U, pair, 2);
  float farther = far + ((lane & 1 ? other : 0.0F) + (lane & 2 ? other_pair : 0.0F));
  far += pair + other_pair;
  if constexpr (kDefect == Defect::kTotalMinusNear) farther = far - ((lane & 1 ? 0.0F : other) + (lane & 2 ? 0.0F : other_pair)) - sum;
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const float a = dp[at_row(h, i)];
    if constexpr (kDefect == Defect::kSuffixWithKeyItself) farther += a;
    dp[at_row(h, i)] = fmaf(rest[i], a, -(beta[at_row(h, i)] * farther));
    if constexpr (kDefect != Defect::kSuffixWithKeyItself) farther += a;
    if constexpr (kDefect == Defect::kSumIn16Bits) farther = in_16_bits(farther);
  }
}

// In fp16, dz goes to the matrix unit times a power of two, so that the largest of them so far lies in [2^14, 2^15): what is lost then is
// 2^−39 of it. Sums change their scale with it, which is exact. In bf16 the scale is 1.
template <class Element>
constexpr bool kScaled = std::is_same_v<Element, __half>;
constexpr float kFirstScale = 0x1p60F;

template <int h>
__device__ __forceinline__ float largest_of_row(const float (&d)[32]) {
  float most = 0.0F;
#pragma unroll
  for (int i = 0; i < 16; ++i) most = fmaxf(most, fabsf(d[at_row(h, i)]));
  return most;
}
/// The scale for numbers up to `largest`, given the one so far.
__device__ __forceinline__ float next_scale(float scale, float largest) {
  if (largest * scale < 0x1p15F) return scale;
  const int exponent = static_cast<int>(__float_as_uint(largest) >> 23);  // of `largest`, plus 127
  return __uint_as_float(static_cast<uint32_t>(254 + 14 - exponent) << 23);
}

}  // namespace attest::stick
