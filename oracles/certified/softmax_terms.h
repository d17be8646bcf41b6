// Softmax: the error terms of the weights and of dz. One vector of rows at a time; a state per quantity that a row sums.
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

/// The keys that a kernel may take for the largest: those whose logits lie within twice both errors of it.
struct Candidates {
  V count, top, top_z, top_reach;  // top_reach: how far its logit may be off
  V low, high, dot, number;        // of d, and the largest Σ|dout||v|, among them
};
/// Sums of one vector of rows, for c = 1: s and what it may be off.
struct Spread {
  Candidates of;
  V size, dot_qk, dot_v, unit;
};

/// At most 2 acc(D), of either kind of arithmetic, times Σ|q||k|, and 2u·2|z|.
ATTEST_INLINE V reach_of(const Work& w, V dot, V z) {
  const double width = static_cast<double>(w.k.width), sixteenths = static_cast<double>((w.k.width + 15) / 16);
  const double accumulate = greater(width, sixteenths * 4) * 0x1p-24;
  return all(2.0) * (all(accumulate) * dot + all(0x1p-24) * (all(2.0) * absolute(z) + all(logit_underflow(w))));
}

/// What d_j may be off: nothing where the key is sure to be the one subtracted.
struct Difference {
  V distance, dot_v, unit;
};
ATTEST_INLINE Difference difference_of(const Candidates& c, V j, V d, V dp_dot, V underflow) {
  const V distance = larger(d - c.low, c.high - d);
  const I sure = (j == c.top) & (c.number == all(1.0));
  return {distance, select(sure, zero(), dp_dot + c.dot), select(sure, zero(), distance + all(2.0) * underflow)};
}

inline void Softmax::difference_terms(const Work& w, Block& b, const double* sums) {
  struct Result {
    Spread of;
    V s, dlse, lse;
  };
  Candidates candidates[kRowsMax / kLanes];
  const double *z = term_plane(w, b, kLogit), *dot = term_plane(w, b, kLogitDot);
  double top_z[kRowsMax], top_reach[kRowsMax];
  double *dp_dot = term_plane(w, b, kDpDot), *weight_dot = term_plane(w, b, kWeightDotQk), *weight_unit = term_plane(w, b, kWeightUnit);
  absolute_dots(w, b, w.v, w.dout, 1, dp_dot);
  for (int64_t i = 0; i < w.block_rows; ++i) {
    const int64_t at = static_cast<int64_t>(b.top[i]) * w.block_rows + i;
    top_z[i] = b.keys > 0 ? z[at] : 0;
    top_reach[i] = b.keys > 0 ? reach_of(w, all(dot[at]), all(z[at]))[0] : 0;
  }
  for (int64_t n = 0; n < w.block_rows / kLanes; ++n)
    candidates[n] = {load(w.count + b.first + n * kLanes), load(b.top + n * kLanes), load(top_z + n * kLanes),
                     load(top_reach + n * kLanes), zero(), zero(), zero(), zero()};
  sweep(w.block_rows, b.keys, candidates, [&](Candidates& c, V j, int64_t at) {
    const V here = load(z + at), d = load(b.dz_hi + at);
    const I close = (j < c.count) & (c.top_z - here <= c.top_reach + reach_of(w, load(dot + at), here));
    c.number = c.number + select(close, all(1.0), zero());
    c.low = select(close & (d < c.low), d, c.low);
    c.high = select(close & (d > c.high), d, c.high);
    c.dot = select(close, larger(c.dot, load(dp_dot + at)), c.dot);
  });
  Spread spreads[kRowsMax / kLanes];
  for (int64_t n = 0; n < w.block_rows / kLanes; ++n) spreads[n] = {candidates[n], zero(), zero(), zero(), zero()};
  const V underflow = all(value_underflow(w));
  sweep(w.block_rows, b.keys, spreads, [&](Spread& s, V j, int64_t at) {
    const V p = load(b.w_hi + at);
    const Difference d = difference_of(s.of, j, load(b.dz_hi + at), load(dp_dot + at), underflow);
    const I visible = j < s.of.count;
    const V unit = d.distance * (load(weight_unit + at) + all(kLost)) + p * d.unit + all(kUnderflow);
    s.size = s.size + p * d.distance;
    s.dot_qk = s.dot_qk + d.distance * load(weight_dot + at);
    s.dot_v = s.dot_v + p * d.dot_v;
    s.unit = s.unit + select(visible, unit, zero());
  });
  Result results[kRowsMax / kLanes];
  for (int64_t n = 0; n < w.block_rows / kLanes; ++n)
    results[n] = {spreads[n], load(sums + n * kLanes), load(w.dlse + b.first + n * kLanes), absolute(load(b.lse + n * kLanes))};
  double *dz_dot = term_plane(w, b, kDzDotQk), *dz_unit = term_plane(w, b, kDzUnit), *dz_lse = term_plane(w, b, kDzLse);
  double *dz_v = term_plane(w, b, kDzDotV), *dz_sum = term_plane(w, b, kDzSumKv), *dz_trivial = term_plane(w, b, kDzTrivial);
  sweep(w.block_rows, b.keys_padded, results, [&](Result& r, V j, int64_t at) {
    const V p = load(b.w_hi + at), d = load(b.dz_hi + at), rest = d - r.s, size = absolute(rest + r.dlse);
    const Difference e = difference_of(r.of.of, j, d, load(dp_dot + at), underflow);
    const I visible = j < r.of.of.count;
    const V unit = p * (e.unit + r.of.unit + absolute(rest) + all(2.0) * size) + size * (load(weight_unit + at) + all(kLost));
    const V mean = p * r.of.size, own = p * size;
    store(dz_dot + at, select(visible, p * r.of.dot_qk + size * load(weight_dot + at), zero()));
    store(dz_v + at, select(visible, p * (e.dot_v + r.of.dot_v), zero()));
    store(dz_sum + at, select(visible, all(2.0) * mean + own, zero()));
    store(dz_unit + at, select(visible, unit + all(kUnderflow), zero()));
    store(dz_lse + at, select(visible, r.lse * (mean + own), zero()));
    store(dz_trivial + at, select(visible, (p + all(kTiny)) * (absolute(d) + absolute(r.dlse) + r.of.size), zero()));
  });
}

}  // namespace attest::certified::ATTEST_LANES_NAMESPACE
