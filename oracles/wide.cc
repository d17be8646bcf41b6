#include "oracles/wide.h"

#include <array>
#include <bit>
#include <cmath>

namespace attest {
namespace {

constexpr int kTableBits = 8;
constexpr int kTableSize = 1 << kTableBits;
constexpr int kDegree = 16;  // |r| ≤ ln 2 / 512 < 2^−9.5: r^17 / 17! < 2^−209

struct ExpTables {
  Wide step;                               // ln 2 / 256
  double steps_per_unit;                   // 256 / ln 2
  std::array<Wide, kTableSize> power;      // 2^(j / 256)
  std::array<Wide, kDegree + 1> inverse;   // 1 / n
};

ExpTables make_tables() {
  ExpTables t;
  t.step = log(Wide(2)) / kTableSize;
  t.steps_per_unit = static_cast<double>(1 / t.step);
  for (int j = 0; j < kTableSize; ++j) t.power[j] = exp(t.step * j);
  for (int n = 1; n <= kDegree; ++n) t.inverse[n] = Wide(1) / n;
  return t;
}

/// Σ r^n / n!, innermost term first.
Wide exp_series(const Wide& r, const ExpTables& t) {
  Wide sum = 1;
  for (int n = kDegree; n >= 1; --n) {
    sum *= r;
    sum *= t.inverse[n];
    sum += 1;
  }
  return sum;
}

}  // namespace

Wide exp_nonpositive(const Wide& x) {
  static const ExpTables tables = make_tables();
  if (x < -0x1p20) return 0;
  const auto steps = static_cast<int64_t>(std::nearbyint(static_cast<double>(x) * tables.steps_per_unit));
  const Wide r = x - tables.step * steps;
  const auto j = static_cast<size_t>(steps & (kTableSize - 1));
  return ldexp(tables.power[j] * exp_series(r, tables), static_cast<int>((steps - static_cast<int64_t>(j)) / kTableSize));
}

int lowest_bit(const double* x, int64_t n) {
  int low = INT32_MAX;
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) return kNotFinite;
    if (x[i] == 0) continue;
    int exponent = 0;
    const double fraction = std::frexp(std::fabs(x[i]), &exponent);
    low = std::min(low, exponent - 53 + std::countr_zero(static_cast<uint64_t>(std::ldexp(fraction, 53))));
  }
  return low == INT32_MAX ? 0 : low;
}

// Two-sum leaves each rounding error as a double. All of them are integers times 2^low and at most 2^−53·Σ|a||b|, so that
// their plain sum is exact when n·2^−53·Σ|a||b| ≤ 2^(53 + low); one bit is kept for the rounding of Σ|a||b| itself.
Dot dot(const double* a, const double* b, int64_t n, int low) {
  double high = 0, rest = 0, absolute = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double product = a[i] * b[i];
    const double sum = high + product;
    const double shadow = sum - high;
    rest += (high - (sum - shadow)) + (product - shadow);
    high = sum;
    absolute += std::fabs(product);
  }
  if (absolute * static_cast<double>(n) <= std::ldexp(1.0, 105 + low)) {
    Wide value = high;
    if (rest != 0) value += rest;
    return {value, absolute};
  }
  Wide value = 0;
  for (int64_t i = 0; i < n; ++i) value += Wide(a[i] * b[i]);
  return {value, absolute};
}

}  // namespace attest
