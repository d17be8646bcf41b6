// What both operators share in a block of rows: the dots, the sums over keys and over rows with their bounds, the output.
#pragma once

#include "oracles/certified/exp.h"
#include "oracles/certified/products.h"

namespace attest::certified::ATTEST_LANES_NAMESPACE {

inline constexpr double kInfinity = __builtin_inf();
inline constexpr double kUp = 1.02;          // covers the rounding of the bounds' own evaluation, and products of relative errors
inline constexpr double kFloor = 0x1p-1000;  // covers every underflow that has no bound of its own
inline constexpr int64_t kRowsMax = 32;

ATTEST_INLINE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
ATTEST_INLINE double greater(double a, double b) { return a > b ? a : b; }
ATTEST_INLINE double lesser(double a, double b) { return a < b ? a : b; }
ATTEST_INLINE double magnitude(double x) { return x < 0 ? -x : x; }
/// NaN stands for an infinity that met a zero.
ATTEST_INLINE double or_infinite(double bound, double limit = 0x1.fffffffffffffp1023) { return bound <= limit ? bound : kInfinity; }

/// For each vector of rows: step(state, key, place in a plane) over keys [0, keys), ascending or descending. States of several
/// vectors are worked side by side, which hides latency and changes no bit.
inline constexpr int kSideBySide = 2;
template <bool kDescending = false, class State, class Step>
ATTEST_INLINE void sweep(int64_t block_rows, int64_t keys, State* states, const Step& step) {
  for (int64_t n = 0; n < block_rows / kLanes; n += kSideBySide) {
    State state[kSideBySide];
    for (int g = 0; g < kSideBySide; ++g) state[g] = states[n + g];
    for (int64_t l = 0; l < keys; ++l) {
      const int64_t j = kDescending ? keys - 1 - l : l;
      for (int g = 0; g < kSideBySide; ++g) step(state[g], all(static_cast<double>(j)), j * block_rows + (n + g) * kLanes);
    }
    for (int g = 0; g < kSideBySide; ++g) states[n + g] = state[g];
  }
}

/// hi + lo [key, row] = keys · queries. Returns what the dots lose, relative to |query| · |key|.
template <class Arithmetic>
double dots(const Work& w, const Block& b, const Side& keys, const Side& queries, double* hi, double* lo) {
  const int64_t rows = w.block_rows;
  const Panels right = {queries.columns + b.first * queries.width, queries.width * kPanel, rows / kPanel};
  const Left left = {keys.rows, keys.rows, queries.width, 1};
  const double width = static_cast<double>(queries.width), span = queries.spans[b.first / rows];
  double loss = 0;
  const auto emit = [&](int64_t m, int64_t n, Two x) {
    store(hi + m * rows + n, x.h);
    if (lo != nullptr) store(lo + m * rows + n, x.l);
  };
  for (int64_t begin = 0; begin < b.keys_padded; begin += kKeyTile) {
    const int64_t end = smaller(begin + kKeyTile, b.keys_padded);
    const double spans = span * keys.spans[begin / kKeyTile];
    if (!Arithmetic::kBounds || spans <= 0x1.ffffffp52) {
      multiply<InDouble>(left, begin, end, right, queries.width, emit);
      continue;
    }
    multiply<Compensated>(left, begin, end, right, queries.width, emit);
    const double exact = spans * width <= 0x1p104 ? 0 : 1.01 * width * width * kU * kU;
    loss = greater(loss, exact + (lo == nullptr ? kU : 0));
  }
  return loss;
}

/// sum[row, column] = Σ_j plane[j, row] · keys[j, column].
template <class Arithmetic>
void sum_over_keys(const Work& w, const Block& b, const Side& keys, const double* hi, const double* lo) {
  const int64_t rows = w.block_rows;
  for (int64_t i = 0; i < rows * keys.padded; ++i) b.sum_hi[i] = b.sum_lo[i] = 0;
  for (int64_t begin = 0; begin < b.keys; begin += kKeyBlock) {
    const Left left = {hi + begin * rows, (Arithmetic::kPair ? lo : hi) + begin * rows, 1, rows};
    const Panels right = {keys.panels + begin * kPanel, w.keys_padded * kPanel, keys.padded / kPanel};
    multiply<ProductOf<Arithmetic>>(left, 0, rows, right, smaller(kKeyBlock, b.keys - begin),
                 [&](int64_t m, int64_t n, Two x) { add_block<Arithmetic>(b.sum_hi, b.sum_lo, m * keys.padded + n, x); });
  }
}

/// bound[row, column] = Σ_j factor(j) · plane[j, row] · |keys[j, column]|, with factor(j) constant on each block of keys.
template <class Factor>
void bound_over_keys(const Work& w, const Block& b, const Side& keys, const double* plane, double* bound, const Factor& factor) {
  const int64_t rows = w.block_rows;
  for (int64_t i = 0; i < rows * keys.padded; ++i) bound[i] = 0;
  for (int64_t begin = 0; begin < b.keys; begin += kKeyBlock) {
    const Left left = {plane + begin * rows, plane + begin * rows, 1, rows};
    const Panels right = {keys.panels + begin * kPanel, w.keys_padded * kPanel, keys.padded / kPanel};
    const V f = all(factor(begin));
    multiply<OfAbsolutes>(left, 0, rows, right, smaller(kKeyBlock, b.keys - begin), [&](int64_t m, int64_t n, Two x) {
      double* at = bound + m * keys.padded + n;
      store(at, fma(f, x.h, load(at)));
    });
  }
}

/// target += Σ_i plane[j, i] · queries[i, column] for keys [begin, end), and the bound with `factor`.
template <class Arithmetic>
void sum_over_rows(const Work& w, const Block& b, const Side& queries, const Sum& target, const double* hi, const double* lo,
                   int64_t begin, int64_t end) {
  const int64_t rows = w.block_rows;
  const Panels right = {queries.panels + b.first * queries.padded, rows * kPanel, queries.padded / kPanel};
  multiply<ProductOf<Arithmetic>>({hi, Arithmetic::kPair ? lo : hi, rows, 1}, begin, end, right, rows,
               [&](int64_t m, int64_t n, Two x) { add_block<Arithmetic>(target.hi, target.lo, m * queries.padded + n, x); });
}
ATTEST_INLINE void bound_over_rows(const Work& w, const Block& b, const Side& queries, double* bound, const double* plane,
                                   int64_t begin, int64_t end, double factor) {
  const int64_t rows = w.block_rows;
  const Panels right = {queries.panels + b.first * queries.padded, rows * kPanel, queries.padded / kPanel};
  multiply<OfAbsolutes>({plane, plane, rows, 1}, begin, end, right, rows, [&](int64_t m, int64_t n, Two x) {
    double* at = bound + m * queries.padded + n;
    store(at, fma(all(factor), x.h, load(at)));
  });
}

template <class Arithmetic>
ATTEST_INLINE double key_sum_error(int64_t keys) {
  return sum_error<Arithmetic>(smaller(kKeyBlock, keys), (keys + kKeyBlock - 1) / kKeyBlock);
}
template <class Arithmetic>
ATTEST_INLINE double row_sum_error(const Work& w) {
  return sum_error<Arithmetic>(w.block_rows, w.blocks());
}

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
