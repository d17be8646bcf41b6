// exp and log of the lanes, without libm. Constants and claims: exp_tables.h; proofs: README.md.
#pragma once

#include "oracles/certified/arithmetic.h"
#include "oracles/certified/exp_tables.h"

namespace attest::certified::ATTEST_LANES_NAMESPACE {

/// k = round(64 x / ln 2): as a double, and as the low bits of an integer.
struct Steps {
  V k;
  I bits;
};
ATTEST_INLINE Steps steps_of(V x) {
  const V magic = all(0x1.8p52), t = fma(x, all(kStepsPerUnit), magic);
  return {t - magic, (I)t};
}
/// 2^⌊k / 64⌋, for results that are normal.
ATTEST_INLINE V power_of_two(I bits) { return (V)(((bits & ~(I{} + 63)) << 46) + (int64_t{1023} << 52)); }

/// Double: e^(h + l) in one double.
ATTEST_INLINE V exp_double(Two x) {
  const Steps s = steps_of(x.h);
  const V r = fma(-s.k, all(kStep23), fma(-s.k, all(kStep1), x.h)) + x.l;
  V q = all(kInverseFactorial[5]);
  for (int n = 5; n >= 2; --n) q = fma(q, r, all(kInverseFactorial[n - 1]));
  q = fma(q * r, r, r);  // e^r − 1
  const V power = gather(kPower, s.bits & 63);
  return select(x.h < all(kExpLowest), zero(), fma(power, q, power) * power_of_two(s.bits));
}

/// r = x − k ln2/64 as a pair.
ATTEST_INLINE Two reduce(Two x, V k) {
  const Two s = two_sum(fma(-k, all(kStep1), x.h), -(k * all(kStep2)));
  const Two t = two_sum(s.h, x.l);
  return two_sum(t.h, fma(-k, all(kStep3), s.l + t.l));
}

/// Σ_{n ≥ 1} r^n / n!: degrees 6 to 11 in double, the rest in pairs.
ATTEST_INLINE Two exp_minus_one(Two r) {
  V q = all(kInverseFactorial[10]);
  for (int n = 10; n >= 6; --n) q = fma(q, r.h, all(kInverseFactorial[n - 1]));
  Two y = fast_two_sum(all(kInverseFactorial[4]), fma(q, r.h, all(kInverseFactorialLow[4])));
  for (int n = 4; n >= 1; --n) {
    const Two p = two_product(r.h, y.h);
    const V low = fma(r.l, y.h, fma(r.h, y.l, p.l));
    const Two s = fast_two_sum(all(kInverseFactorial[n - 1]), p.h);
    y = {s.h, s.l + (low + all(kInverseFactorialLow[n - 1]))};
  }
  return DoubleDouble::mul(r, y);
}

/// Double-double: e^(h + l) as a pair.
ATTEST_INLINE Two exp_double_double(Two x) {
  const Steps s = steps_of(x.h);
  const Two p = exp_minus_one(reduce(x, s.k));
  const I j = s.bits & 63;
  const Two power = {gather(kPower, j), gather(kPowerLow, j)};
  const Two product = DoubleDouble::mul(power, p);
  const Two sum = fast_two_sum(power.h, product.h);
  const Two y = fast_two_sum(sum.h, sum.l + (power.l + product.l));
  const V scale = power_of_two(s.bits);
  return select(x.h < all(kExpLowest), Two{zero(), zero()}, Two{y.h * scale, y.l * scale});
}

template <class Arithmetic>
ATTEST_INLINE Two exponential(Two x) {
  if constexpr (Arithmetic::kPair) return exp_double_double(x);
  return {exp_double(x), zero()};
}

/// log x for a pair 1/2 ≤ x ≤ 2^60, within kLogError·(1 + |log x|): three Newton steps in double from the exponent, one in pairs.
inline constexpr double kLogError = 2 * kExpDoubleDoubleError;
ATTEST_INLINE Two log_double_double(Two x) {
  constexpr double kLn2 = 0x1.62e42fefa39efp-1;
  const I bits = (I)x.h;
  const V exponent = __builtin_convertvector((bits >> 52) - 1023, V);
  const V fraction = (V)((bits & ((int64_t{1} << 52) - 1)) | (int64_t{1023} << 52));
  V y = (exponent + (fraction - all(1.0))) * all(kLn2);
  for (int step = 0; step < 3; ++step) y = y + fma(x.h, exp_double({-y, zero()}), all(-1.0));
  const Two w = DoubleDouble::add_double(DoubleDouble::mul(x, exp_double_double({-y, zero()})), all(-1.0));
  const V square = w.h * w.h;  // log(1 + w) = w − w²/2 + w³/3
  const V series = square * fma(w.h, all(1.0 / 3), all(-0.5));
  return DoubleDouble::add_double(DoubleDouble::add_double(w, series), y);
}

}  // namespace attest::certified::ATTEST_LANES_NAMESPACE
