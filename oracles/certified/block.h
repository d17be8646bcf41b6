// What both operators share in a block of rows: constants of the bounds, passes over the keys, dots.
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
ATTEST_INLINE double or_infinite(double bound) { return bound < kInfinity ? bound : kInfinity; }

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
  const Left left = {keys.rows, keys.rows, keys.rows, queries.width, 1};
  const double width = static_cast<double>(queries.width), span = queries.spans[b.first / rows];
  double loss = 0;
  const auto emit = [&](int64_t m, int64_t n, Two x, V) {
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

}  // namespace attest::certified::ATTEST_LANES_NAMESPACE
