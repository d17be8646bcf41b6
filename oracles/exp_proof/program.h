// The exp of the certified tiers once more, over a type: doubles give the engine's bits (a test compares them), forms give a
// proof about them. The order of operations is that of oracles/certified/exp.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>

#include "oracles/certified/exp_tables.h"
#include "oracles/exp_proof/form.h"

namespace attest::exp_proof {

inline double fma(double a, double b, double c) { return std::fma(a, b, c); }
inline double add(double a, double b) { return a + b; }
inline double multiply(double a, double b) { return a * b; }
inline Pair<double> two_product(double a, double b) { return {a * b, std::fma(a, b, -(a * b))}; }
inline Pair<double> two_sum(double a, double b) {
  const double s = a + b, shadow = s - a;
  return {s, (a - (s - shadow)) + (b - shadow)};
}
inline Pair<double> fast_two_sum(double a, double b) {
  const double s = a + b;
  return {s, b - (s - a)};
}

/// The engine's constants; a copy, so that a test may spoil one.
struct Constants {
  double inverse[11], inverse_low[5], power[64], power_low[64];
};
inline Constants engine_constants() {
  Constants c;
  std::ranges::copy(certified::kInverseFactorial, c.inverse);
  std::ranges::copy(certified::kInverseFactorialLow, c.inverse_low);
  std::ranges::copy(certified::kPower, c.power);
  std::ranges::copy(certified::kPowerLow, c.power_low);
  return c;
}

template <class T>
Pair<T> multiply_pairs(const Pair<T>& a, const Pair<T>& b) {
  const Pair<T> p = two_product(a.h, b.h);
  return fast_two_sum(p.h, fma(a.l, b.h, fma(a.h, b.l, p.l)));
}

/// e^r − 1 for a reduced pair.
template <class T>
Pair<T> exp_minus_one(const Pair<T>& r, const Constants& c) {
  T q(c.inverse[10]);
  for (int n = 10; n >= 6; --n) q = fma(q, r.h, T(c.inverse[n - 1]));
  Pair<T> y = fast_two_sum(T(c.inverse[4]), fma(q, r.h, T(c.inverse_low[4])));
  for (int n = 4; n >= 1; --n) {
    const Pair<T> p = two_product(r.h, y.h);
    const T low = fma(r.l, y.h, fma(r.h, y.l, p.l));
    const Pair<T> s = fast_two_sum(T(c.inverse[n - 1]), p.h);
    y = {s.h, add(s.l, add(low, T(c.inverse_low[n - 1])))};
  }
  return multiply_pairs(r, y);
}

/// 2^(j/64)·(1 + p).
template <class T>
Pair<T> times_power(const Pair<T>& p, const Constants& c, int j) {
  const Pair<T> power{T(c.power[j]), T(c.power_low[j])}, product = multiply_pairs(power, p);
  const Pair<T> sum = fast_two_sum(power.h, product.h);
  return fast_two_sum(sum.h, add(sum.l, add(power.l, product.l)));
}

/// Tier 0: 2^(j/64)·e^r for a reduced double.
template <class T>
T exp_in_double(const T& r, const Constants& c, int j) {
  T q(c.inverse[5]);
  for (int n = 5; n >= 2; --n) q = fma(q, r, T(c.inverse[n - 1]));
  q = fma(multiply(q, r), r, r);
  return fma(T(c.power[j]), q, T(c.power[j]));
}

/// k = 64·i + j, and the argument less k·ln2/64.
struct Reduced {
  Pair<double> r;
  int i, j;
};
inline Reduced reduce(Pair<double> x, bool in_double) {
  using namespace certified;
  const double magic = 0x1.8p52, k = fma(x.h, kStepsPerUnit, magic) - magic;
  const auto whole = static_cast<int>(k);
  const int j = whole & 63, i = (whole - j) / 64;
  if (in_double) return {{fma(-k, kStep23, fma(-k, kStep1, x.h)) + x.l, 0}, i, j};
  const Pair<double> s = two_sum(fma(-k, kStep1, x.h), -(k * kStep2)), t = two_sum(s.h, x.l);
  return {two_sum(t.h, fma(-k, kStep3, s.l + t.l)), i, j};
}
inline Pair<double> exp_pair(Pair<double> x) {
  const Constants c = engine_constants();
  const Reduced at = reduce(x, false);
  const Pair<double> y = times_power(exp_minus_one(at.r, c), c, at.j);
  return {std::ldexp(y.h, at.i), std::ldexp(y.l, at.i)};
}
inline double exp_double(Pair<double> x) {
  const Reduced at = reduce(x, true);
  return std::ldexp(exp_in_double(at.r.h, engine_constants(), at.j), at.i);
}

}  // namespace attest::exp_proof
