// Sums over keys (out, dq) and over rows (dk, dv), and the same sums of what their operands may be off.
#pragma once

#include "oracles/certified/block.h"

namespace attest::certified::ATTEST_LANES_NAMESPACE {

/// A plane of a block, [key, row], and that of its bounds (null: each number is its own).
struct Plane {
  const double *hi, *lo, *bound;
};
template <class Arithmetic>
ATTEST_INLINE Left left_of(const Plane& p, int64_t at, int64_t row, int64_t step) {
  return {p.hi + at, (Arithmetic::kPair ? p.lo : p.hi) + at, (p.bound != nullptr ? p.bound : p.hi) + at, row, step};
}

/// Σ_j plane[j, row] · keys[j, column], and its bound: Σ_j factor(j) · bound[j, row] · |keys[j, column]|, with factor(j) constant
/// on each block of keys.
template <class Arithmetic, bool kOwn, class Factor>
void sum_over_keys(const Work& w, const Block& b, const Side& keys, const Plane& plane, const Factor& factor) {
  const int64_t rows = w.block_rows;
  for (double* sum : {b.sum_hi, Arithmetic::kPair ? b.sum_lo : b.sum_hi, b.sum_bound})
    for (int64_t i = 0; i < rows * keys.padded; ++i) sum[i] = 0;
  for (int64_t begin = 0; begin < b.keys; begin += kKeyBlock) {
    const Left left = left_of<Arithmetic>(plane, begin * rows, 1, rows);
    const Panels right = {keys.panels + begin * kPanel, w.keys_padded * kPanel, keys.padded / kPanel};
    const V f = all(factor(begin));
    multiply<ProductOf<Arithmetic, kOwn>>(left, 0, rows, right, smaller(kKeyBlock, b.keys - begin),
                                          [&](int64_t m, int64_t n, Two x, V bound) {
      const int64_t at = m * keys.padded + n;
      add_block<Arithmetic>(b.sum_hi, b.sum_lo, at, x);
      if constexpr (Arithmetic::kBounds) store(b.sum_bound + at, fma(f, bound, load(b.sum_bound + at)));
    });
  }
}

/// target += Σ_i plane[j, i] · queries[i, column] for keys [begin, end), and its bound with `factor`.
template <class Arithmetic, bool kOwn>
void sum_over_rows(const Work& w, const Block& b, const Side& queries, const Sum& target, const Plane& plane, int64_t begin,
                   int64_t end, double factor) {
  const int64_t rows = w.block_rows;
  const Panels right = {queries.panels + b.first * queries.padded, rows * kPanel, queries.padded / kPanel};
  multiply<ProductOf<Arithmetic, kOwn>>(left_of<Arithmetic>(plane, 0, rows, 1), begin, end, right, rows,
                                        [&](int64_t m, int64_t n, Two x, V bound) {
    const int64_t at = m * queries.padded + n;
    add_block<Arithmetic>(target.hi, target.lo, at, x);
    if constexpr (Arithmetic::kBounds) store(target.bound + at, fma(all(factor), bound, load(target.bound + at)));
  });
}

/// sum[row, column] = Σ_j plane[j, row] · |keys[j, column]|; Product: of |plane| or, where it is not negative, of the plane.
template <class Product>
void sum_sizes_over_keys(const Work& w, const Block& b, const Side& keys, const double* plane, double* sum) {
  const int64_t rows = w.block_rows;
  for (int64_t i = 0; i < rows * keys.padded; ++i) sum[i] = 0;
  for (int64_t begin = 0; begin < b.keys; begin += kKeyBlock) {
    const Panels right = {keys.sizes + begin * kPanel, w.keys_padded * kPanel, keys.padded / kPanel};
    multiply<Product>(left_of<Double>({plane + begin * rows}, 0, 1, rows), 0, rows, right, smaller(kKeyBlock, b.keys - begin),
                      [&](int64_t m, int64_t n, Two x, V) {
      double* at = sum + m * keys.padded + n;
      store(at, load(at) + x.h);
    });
  }
}
/// sum += Σ_i plane[j, i] · |queries[i, column]| for keys [begin, end).
template <class Product>
void sum_sizes_over_rows(const Work& w, const Block& b, const Side& queries, const double* plane, double* sum, int64_t begin,
                         int64_t end) {
  const int64_t rows = w.block_rows;
  const Panels right = {queries.sizes + b.first * queries.padded, rows * kPanel, queries.padded / kPanel};
  multiply<Product>(left_of<Double>({plane}, 0, rows, 1), begin, end, right, rows, [&](int64_t m, int64_t n, Two x, V) {
    double* at = sum + m * queries.padded + n;
    store(at, load(at) + x.h);
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

}  // namespace attest::certified::ATTEST_LANES_NAMESPACE
