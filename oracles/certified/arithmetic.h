// The two arithmetics of the certified tiers, and a plain one for comparison. All numbers are pairs high + low; double leaves
// low at 0. The error of each operation, relative to its exact result, is stated beside it; README.md proves it. u = 2^-53.
#pragma once

#include "oracles/certified/lanes.h"

namespace attest::certified::ATTEST_LANES_NAMESPACE {

struct Two {
  V h, l;
};

ATTEST_INLINE V zero() { return V{}; }
ATTEST_INLINE Two operator-(Two a) { return {-a.h, -a.l}; }
ATTEST_INLINE Two select(I where, Two a, Two b) { return {select(where, a.h, b.h), select(where, a.l, b.l)}; }

/// h + l = a + b exactly (Knuth).
ATTEST_INLINE Two two_sum(V a, V b) {
  const V s = a + b, shadow = s - a;
  return {s, (a - (s - shadow)) + (b - shadow)};
}
/// The same where |a| ≥ |b| or a = 0 (Dekker).
ATTEST_INLINE Two fast_two_sum(V a, V b) {
  const V s = a + b;
  return {s, b - (s - a)};
}
/// h + l = a·b exactly, but for underflow.
ATTEST_INLINE Two two_product(V a, V b) {
  const V p = a * b;
  return {p, fma(a, b, -p)};
}

inline constexpr double kU = 0x1p-53;

/// Tier 1. Every result is normalised: |l| ≤ u |h|.
struct DoubleDouble {
  static constexpr bool kPair = true, kBounds = true;
  static constexpr double kMul = 7 * kU * kU, kMulDouble = 3 * kU * kU, kAdd = 3 * kU * kU, kReciprocal = 8 * kU * kU;
  static constexpr double kAccumulate = 3 * kU * kU;  // each step of accumulate()
  static constexpr double kRead = 0;                  // a pair is used as it is

  ATTEST_INLINE Two mul(Two a, Two b) {
    const Two p = two_product(a.h, b.h);
    return fast_two_sum(p.h, fma(a.l, b.h, fma(a.h, b.l, p.l)));
  }
  ATTEST_INLINE Two mul_double(Two a, V b) {
    const Two p = two_product(a.h, b);
    return fast_two_sum(p.h, fma(a.l, b, p.l));
  }
  ATTEST_INLINE Two add(Two a, Two b) {
    const Two s = two_sum(a.h, b.h), t = two_sum(a.l, b.l);
    const Two v = fast_two_sum(s.h, s.l + t.h);
    return fast_two_sum(v.h, t.l + v.l);
  }
  ATTEST_INLINE Two add_double(Two a, V b) {
    const Two s = two_sum(a.h, b);
    return fast_two_sum(s.h, a.l + s.l);
  }
  ATTEST_INLINE Two accumulate(Two sum, Two x) { return add(sum, x); }
  ATTEST_INLINE Two reciprocal(Two b) {
    const V r = all(1.0) / b.h;
    const V rest = fma(-b.l, r, fma(-b.h, r, all(1.0)));  // 1 − b r
    const V c = r * rest;
    return fast_two_sum(r, fma(c, rest, c));
  }
};

/// Tier 0. Sums of a row are kept as pairs; everything else is one double.
struct Double {
  static constexpr bool kPair = false, kBounds = true;
  static constexpr double kMul = kU, kMulDouble = kU, kAdd = kU, kReciprocal = kU;
  static constexpr double kAccumulate = 2 * kU * kU;
  static constexpr double kRead = kU;  // the low part of a row's sum is dropped where the sum is used

  ATTEST_INLINE Two mul(Two a, Two b) { return {a.h * b.h, zero()}; }
  ATTEST_INLINE Two mul_double(Two a, V b) { return {a.h * b, zero()}; }
  ATTEST_INLINE Two add(Two a, Two b) { return {a.h + b.h, zero()}; }
  ATTEST_INLINE Two add_double(Two a, V b) { return {a.h + b, zero()}; }
  ATTEST_INLINE Two accumulate(Two sum, Two x) { return DoubleDouble::add_double(sum, x.h); }
  ATTEST_INLINE Two reciprocal(Two b) { return {all(1.0) / b.h, zero()}; }
};

/// Tier 0 without bounds and without the care: what the bench compares with.
struct Plain : Double {
  static constexpr bool kBounds = false;
  ATTEST_INLINE Two accumulate(Two sum, Two x) { return {sum.h + x.h, zero()}; }
};

template <class Arithmetic>
ATTEST_INLINE Two load(const double* high, const double* low, int64_t at) {
  if constexpr (Arithmetic::kPair) return {load(high + at), load(low + at)};
  return {load(high + at), zero()};
}
template <class Arithmetic>
ATTEST_INLINE void store(double* high, double* low, int64_t at, Two x) {
  store(high + at, x.h);
  if constexpr (Arithmetic::kPair) store(low + at, x.l);
}

}  // namespace attest::certified::ATTEST_LANES_NAMESPACE
