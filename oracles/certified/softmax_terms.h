// Softmax: the error terms of the weights. One vector of rows at a time; a state for what a row sums.
#pragma once

#include "oracles/certified/softmax.h"
#include "oracles/certified/terms.h"

namespace attest::certified::ATTEST_LANES_NAMESPACE {

/// ρ(P_j) = ε(z_j) + Σ P ε(z) + 8 [unit] (+ 1 [sum-kv], which needs no plane).
inline void Softmax::weight_terms(const Work& w, Block& b) {
  struct Mean {
    V dot, unit, lse;
  };
  Mean means[kRowsMax / kLanes];
  for (int64_t n = 0; n < w.block_rows / kLanes; ++n) means[n] = {zero(), zero(), absolute(load(b.lse + n * kLanes))};
  const V underflow = all(logit_underflow(w));
  const double *z = term_plane(w, b, kLogit), *dot = term_plane(w, b, kLogitDot);
  sweep(w.block_rows, b.keys, means, [&](Mean& m, V, int64_t at) {
    const V p = load(b.w_hi + at);
    m.dot = m.dot + p * load(dot + at);
    m.unit = m.unit + p * (all(2.0) * absolute(load(z + at)) + underflow);
  });
  double *weight_dot = term_plane(w, b, kWeightDotQk), *weight_unit = term_plane(w, b, kWeightUnit);
  double* weight_lse = term_plane(w, b, kWeightLse);
  sweep(w.block_rows, b.keys_padded, means, [&](Mean& m, V, int64_t at) {
    const V p = load(b.w_hi + at), unit = all(2.0) * absolute(load(z + at)) + underflow;
    store(weight_dot + at, p * (load(dot + at) + m.dot));
    store(weight_unit + at, p * (unit + m.unit + all(kProbabilityUnits)));
    store(weight_lse + at, p * m.lse);
  });
  double row_dot[kRowsMax], row_unit[kRowsMax];
  for (int64_t n = 0; n < w.block_rows / kLanes; ++n) {
    store(row_dot + n * kLanes, means[n].dot);
    store(row_unit + n * kLanes, means[n].unit);
  }
  for (int64_t i = 0; i < smaller(w.block_rows, w.rows - b.first); ++i) {
    const TermWriter write = {(*w.out)[Quantity::kLse], b.first + i};
    if (w.count[b.first + i] == 0) continue;
    write(ErrorSource::kDotQk, row_dot[i]);
    write(ErrorSource::kSumKv, 1);
    write(ErrorSource::kUnit, row_unit[i] + 2 * (1 + magnitude(b.lse[i])));
    write.trivial(kInfinity);
  }
}

}  // namespace attest::certified::ATTEST_LANES_NAMESPACE
