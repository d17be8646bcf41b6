// What decides whether the products of a row are exact: its norm and its lowest bit.
#pragma once

#include "oracles/certified/block.h"

namespace attest::certified::ATTEST_LANES_NAMESPACE {

/// Eight partial sums, whatever the number of lanes: the norm has the same bits on every machine. The lowest bit of the row is
/// that of its smallest element, or higher.
inline Measure measure_row(const double* x, int64_t n, int bits, double* sums) {
  constexpr int kVectors = 8 / kLanes;
  V squares[kVectors] = {}, smallest[kVectors];
  I patterns = {};
  for (V& v : smallest) v = all(kInfinity);
  double rest[8] = {};
  for (int64_t at = n / 8 * 8; at < n; ++at) rest[at % 8] = x[at];
  for (int64_t begin = 0; begin < n; begin += 8)
    for (int v = 0; v < kVectors; ++v) {
      const V size = absolute(load((begin + 8 <= n ? x + begin : rest) + v * kLanes));
      double* sum = sums + begin + v * kLanes;
      store(sum, load(sum) + size);
      squares[v] = squares[v] + size * size;
      smallest[v] = select((size > zero()) & (size < smallest[v]), size, smallest[v]);
      patterns |= (I)size;
    }
  double square = 0, least = kInfinity;
  int64_t pattern = 0;
  for (int lane = 0; lane < 8; ++lane) {
    square += squares[lane / kLanes][lane % kLanes];
    least = lesser(least, smallest[lane / kLanes][lane % kLanes]);
    pattern |= patterns[lane % kLanes];
  }
  Measure m;
  m.norm = __builtin_sqrt(square) * (1 + 0x1p-30);
  m.narrow = (pattern & ((int64_t{1} << (53 - bits)) - 1)) == 0;
  if (m.norm > 0 && m.norm < kInfinity) m.span = __builtin_ldexp(m.norm, bits - 1 - __builtin_ilogb(least));
  return m;
}

}  // namespace attest::certified::ATTEST_LANES_NAMESPACE
