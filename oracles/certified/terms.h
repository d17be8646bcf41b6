// The first-order error terms of a kernel's outputs (oracles/README.md), in double, from the same logits, weights and dP.
#pragma once

#include "oracles/certified/sums.h"
#include "oracles/certified/write_terms.h"

namespace attest::certified::ATTEST_LANES_NAMESPACE {

ATTEST_INLINE double* term_plane(const Work& w, const Block& b, TermPlane plane) {
  return b.terms + plane * w.keys_padded * w.block_rows;
}
/// Terms of kUnit that a logit's underflows make: those of its D products, and of the scaling.
ATTEST_INLINE double logit_underflow(const Work& w) {
  return kUnderflow * (magnitude(w.scale) * static_cast<double>(w.k.width) + 1);
}
ATTEST_INLINE double value_underflow(const Work& w) { return kUnderflow * static_cast<double>(w.v.width); }

/// plane[key, row] = factor · Σ |keys||queries|.
inline void absolute_dots(const Work& w, const Block& b, const Side& keys, const Side& queries, double factor, double* plane) {
  const int64_t rows = w.block_rows;
  const Panels right = {queries.columns + b.first * queries.width, queries.width * kPanel, rows / kPanel};
  multiply<OfAbsolutes>(left_of<Double>({keys.rows}, 0, queries.width, 1), 0, b.keys_padded, right, queries.width,
                        [&](int64_t m, int64_t n, Two x, V) { store(plane + m * rows + n, x.h * all(factor)); });
}

/// Before the weights replace q·k: z and |scale| Σ|q||k|.
inline void logit_terms(const Work& w, const Block& b) {
  absolute_dots(w, b, w.k, w.q, magnitude(w.scale), term_plane(w, b, kLogitDot));
  double* logits = term_plane(w, b, kLogit);
  for (int64_t at = 0; at < b.keys_padded * w.block_rows; at += kLanes) store(logits + at, load(b.w_hi + at) * all(w.scale));
}

/// The planes that are summed, in the order of SumPlane; null where an operator or a gradient has none. Only dz, the first, may
/// be negative.
struct Planes {
  const double* of[kSumPlanes];
};
ATTEST_INLINE Planes weight_planes(const Work& w, const Block& b, bool recomputed) {
  return {{b.w_hi, term_plane(w, b, kWeightDotQk), term_plane(w, b, kWeightUnit),
           recomputed && w.op == Op::kSoftmax ? term_plane(w, b, kWeightLse) : nullptr}};
}
ATTEST_INLINE Planes dz_planes(const Work& w, const Block& b) {
  const bool softmax = w.op == Op::kSoftmax;
  return {{b.dz_hi, term_plane(w, b, kDzDotQk), term_plane(w, b, kDzUnit), softmax ? term_plane(w, b, kDzLse) : nullptr,
           term_plane(w, b, kDzDotV), term_plane(w, b, kDzSumKv), term_plane(w, b, kDzTrivial)}};
}

/// Sums the planes over keys, and writes the terms of out (weights) or dq (dz).
inline void terms_over_keys(const Work& w, const Block& b, const Side& keys, const Planes& planes, Quantity quantity) {
  const int64_t plane = w.block_rows * keys.padded;
  for (int s = 0; s < kSumPlanes; ++s)
    if (planes.of[s] != nullptr)
      (s == kOfSize ? sum_sizes_over_keys<OfAbsolutes> : sum_sizes_over_keys<InDouble>)(w, b, keys, planes.of[s],
                                                                                       b.term_sums + s * plane);
  const GroupQuantity& to = (*w.out)[quantity];
  for (int64_t i = 0; i < smaller(w.block_rows, w.rows - b.first); ++i) {
    const auto count = static_cast<int64_t>(w.count[b.first + i]);
    const int64_t tile = count / kKeyTile * keys.padded, rest = count / kKeyTile * kKeyTile;
    for (int64_t d = 0; count > 0 && d < keys.width; ++d) {
      TermSums sums = {{}, keys.sums_before[tile + d], static_cast<double>(count)};
      double largest = keys.largest_before[tile + d];
      for (int64_t j = rest; j < count; ++j) {
        const double x = magnitude(keys.rows[j * keys.width + d]);
        sums.flush += x;
        largest = greater(largest, x);
      }
      for (int s = 0; s < kSumPlanes; ++s)
        if (planes.of[s] != nullptr) sums.of[s] = b.term_sums[s * plane + i * keys.padded + d];
      const TermWriter write = {to, (b.first + i) * keys.width + d};
      if (quantity == Quantity::kOut) write_out_terms(write, sums, w.op == Op::kSoftmax, b.flush[i], largest);
      else write_gradient_terms(write, sums, magnitude(w.scale), ErrorSource::kSumKv);
    }
  }
}

/// Adds a block's planes to the terms of dk or dv.
inline void terms_over_rows(const Work& w, const Block& b, const Side& queries, const Sum& target, const Planes& planes,
                            int64_t begin, int64_t end) {
  for (int s = 0; s < kSumPlanes; ++s)
    if (planes.of[s] != nullptr)
      (s == kOfSize ? sum_sizes_over_rows<OfAbsolutes> : sum_sizes_over_rows<InDouble>)(
          w, b, queries, planes.of[s], target.terms + s * w.keys_padded * queries.padded, begin, end);
}

/// The terms of one key's dk or dv.
inline void finish_terms(const Work& w, const Side& queries, const Sum& target, Quantity quantity, int64_t j) {
  const GroupQuantity& to = (*w.out)[quantity];
  for (int64_t d = 0; d < queries.width; ++d) {
    const int64_t at = j * queries.padded + d;
    TermSums sums = {{}, target.seen[at], w.seen_by[j]};
    for (int s = 0; s < target.planes; ++s) sums.of[s] = target.terms[s * w.keys_padded * queries.padded + at];
    const TermWriter write = {to, w.key_index[j] * queries.width + d};
    if (quantity == Quantity::kDk) write_gradient_terms(write, sums, magnitude(w.scale), ErrorSource::kSumQ);
    else write_dv_terms(write, sums, w.op == Op::kSoftmax);
  }
}

}  // namespace attest::certified::ATTEST_LANES_NAMESPACE
