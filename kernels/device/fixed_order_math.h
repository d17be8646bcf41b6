// exp, log and the logistic pair in fp32 with the same bits on host and device: one multiply or one add at a time, never a
// fused one (-ffp-contract=off, -fmad=false), IEEE division, subnormals kept. Polynomials and range reduction follow Cephes'
// expf and logf (S. Moshier). No branches, so that compilers can vectorise. Largest errors, measured against double by
// fixed_order_math_test.cc: exp 0.983 ulp, log 0.830 ulp.
#pragma once

#include <cstdint>

#include "kernels/device/host_device.h"

namespace attest::fixed_order {

ATTEST_HOST_DEVICE inline uint32_t bits_of(float x) { return __builtin_bit_cast(uint32_t, x); }
ATTEST_HOST_DEVICE inline float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }

inline constexpr uint32_t kInfinityBits = 0x7f800000U;
inline constexpr uint32_t kNanBits = 0x7fc00000U;

/// ln 2 = kLn2High + kLn2Low; the first has 9 bits, so that its product with an exponent is exact.
inline constexpr float kLn2High = 0.693359375F;
inline constexpr float kLn2Low = -2.12194440e-4F;

/// 2^n for n in [-126, 127].
ATTEST_HOST_DEVICE inline float power_of_two(int32_t n) { return float_of(static_cast<uint32_t>(n + 127) << 23); }

/// e^r − 1 − r, divided by r², for |r| ≤ ln 2 / 2.
ATTEST_HOST_DEVICE inline float exp_tail(float r) {
  float y = 1.9875691500e-4F;
  y = y * r + 1.3981999507e-3F;
  y = y * r + 8.3334519073e-3F;
  y = y * r + 4.1665795894e-2F;
  y = y * r + 1.6666665459e-1F;
  return y * r + 5.0000001201e-1F;
}

/// e^x. 0 under −103.98, subnormal under −87.34, infinite over 88.73; NaN stays NaN.
ATTEST_HOST_DEVICE inline float exp(float x) {
  constexpr float kRound = 12582912.0F;  // 1.5 · 2^23: adding it leaves the nearest integer in the low bits
  x = x < -104.0F ? -104.0F : x;
  x = x > 89.0F ? 89.0F : x;
  const float shifted = x * 1.44269504F + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  const float y = (exp_tail(r) * (r * r) + r) + 1.0F;
  const auto exponent = static_cast<int32_t>(bits_of(shifted) - bits_of(kRound));
  const int32_t half = exponent >> 1;  // in two exact steps but the last, so that a subnormal result is rounded once
  return y * power_of_two(half) * power_of_two(exponent - half);
}

/// log(1 + f) − f + f²/2, divided by f³, for 1 + f in [√½, √2].
ATTEST_HOST_DEVICE inline float log_tail(float f) {
  float y = 7.0376836292e-2F;
  y = y * f - 1.1514610310e-1F;
  y = y * f + 1.1676998740e-1F;
  y = y * f - 1.2420140846e-1F;
  y = y * f + 1.4249322787e-1F;
  y = y * f - 1.6668057665e-1F;
  y = y * f + 2.0000714765e-1F;
  y = y * f - 2.4999993993e-1F;
  return y * f + 3.3333331174e-1F;
}

/// Natural logarithm: −inf at ±0, NaN under 0.
ATTEST_HOST_DEVICE inline float log(float x) {
  constexpr uint32_t kSqrtHalfBits = 0x3f3504f3U;
  const bool subnormal = x < power_of_two(-126);
  const uint32_t bits = bits_of(subnormal ? x * power_of_two(24) : x) - kSqrtHalfBits;
  const int32_t exponent = (static_cast<int32_t>(bits) >> 23) - (subnormal ? 24 : 0);
  const float f = float_of((bits & 0x007fffffU) + kSqrtHalfBits) - 1.0F;
  const auto e = static_cast<float>(exponent);
  const float square = f * f;
  const float tail = (log_tail(f) * f * square + e * kLn2Low) - 0.5F * square;
  const float finite = (f + tail) + e * kLn2High;
  const float beyond = x == 0.0F ? -float_of(kInfinityBits) : x > 0.0F ? x : float_of(kNanBits);
  return x > 0.0F && x < float_of(kInfinityBits) ? finite : beyond;
}

/// β = σ(z) and 1 − β = σ(−z), each with a small relative error however large |z| is.
struct Logistic {
  float beta;
  float rest;
};
ATTEST_HOST_DEVICE inline Logistic logistic(float z) {
  const float e = exp(z < 0.0F ? z : -z);
  const float small = e / (1.0F + e);
  const float large = 1.0F / (1.0F + e);
  return z < 0.0F ? Logistic{small, large} : Logistic{large, small};
}

}  // namespace attest::fixed_order
