// Sums over keys (out, dq) and over rows (dk, dv), and the same sums of what their operands may be off.
#pragma once

#include "oracles/certified/block.h"

namespace attest::certified::ATTEST_LANES_NAMESPACE {

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

}  // namespace attest::certified::ATTEST_LANES_NAMESPACE
