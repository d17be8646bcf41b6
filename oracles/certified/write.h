// From a block's sums to the answer: values, radii, and what the definition gives exactly.
#pragma once

#include "oracles/certified/block.h"

namespace attest::certified::ATTEST_LANES_NAMESPACE {

ATTEST_INLINE void write_one(const GroupQuantity& to, int64_t at, double hi, double lo, double radius) {
  const bool known = magnitude(hi) < kInfinity;
  to.hi[at] = known ? hi : 0;
  if (to.lo != nullptr) to.lo[at] = known ? lo : 0;
  to.radius[at] = known ? or_infinite(radius) : kInfinity;
}

/// Writes `count` elements from `at` on: factor · (hi + lo), radius = |factor| · bound + floor · sums, rounded up.
template <class Arithmetic>
void write(const GroupQuantity& to, int64_t at, int64_t count, const double* hi, const double* lo, const double* bound,
           double factor, double floor, const double* sums) {
  double value[3][kPanel];
  for (int64_t begin = 0; begin < count; begin += kPanel) {
    for (int64_t n = 0; n < kPanel; n += kLanes) {
      const int64_t from = begin + n;
      Two x = Arithmetic::kPair ? two_sum(load(hi + from), load(lo + from)) : Two{load(hi + from), zero()};
      if (factor != 1) x = Arithmetic::mul_double(x, all(factor));
      V radius = all(kUp * magnitude(factor)) * (load(bound + from) + all(kFloor)) + all(kFloor);
      if (sums != nullptr) radius = fma(all(kUp * floor), load(sums + from), radius);
      if (to.lo == nullptr) radius = radius + absolute(x.l);
      store(value[0] + n, x.h);
      store(value[1] + n, x.l);
      store(value[2] + n, radius);
    }
    for (int64_t d = 0; d < smaller(kPanel, count - begin); ++d)
      write_one(to, at + begin + d, value[0][d], value[1][d], value[2][d]);
  }
}
ATTEST_INLINE void write_exactly(const GroupQuantity& to, int64_t at, int64_t count, double x) {
  for (int64_t n = at; n < at + count; ++n) {
    to.hi[n] = x;
    if (to.lo != nullptr) to.lo[n] = 0;
    to.radius[n] = 0;
  }
}

}  // namespace attest::certified::ATTEST_LANES_NAMESPACE
