// Softmax: the error terms of dz, whose arg-max key is any of those that a kernel may take for it.
#pragma once

#include "oracles/certified/softmax_backward.h"
#include "oracles/certified/terms.h"

namespace attest::certified::ATTEST_LANES_NAMESPACE {

/// Of one vector of rows: the keys whose logits lie within twice both errors of the largest; s and what it may be off.
struct Spread {
  V count, top, top_z, top_reach;     // top_reach: how far the largest logit may be off
  V low, high, dot, number;           // of d, and the largest Σ|dout||v|, among the candidates
  V size, dot_qk, dot_v, unit;        // Σ P × the largest |d|, and the terms of s
  V s, dlse, lse;
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
ATTEST_INLINE Difference difference_of(const Spread& c, V j, V d, V dp_dot, V underflow) {
  const V distance = larger(d - c.low, c.high - d);
  const I sure = (j == c.top) & (c.number == all(1.0));
  return {distance, select(sure, zero(), dp_dot + c.dot), select(sure, zero(), distance + all(2.0) * underflow)};
}

inline void find_candidates(const Work& w, const Block& b, Spread* spreads) {
  const double *z = term_plane(w, b, kLogit), *dot = term_plane(w, b, kLogitDot), *dp_dot = term_plane(w, b, kDpDot);
  double top_z[kRowsMax], top_reach[kRowsMax];
  for (int64_t i = 0; i < w.block_rows; ++i) {
    const int64_t at = static_cast<int64_t>(b.top[i]) * w.block_rows + i;
    top_z[i] = b.keys > 0 ? z[at] : 0;
    top_reach[i] = b.keys > 0 ? reach_of(w, all(dot[at]), all(z[at]))[0] : 0;
  }
  for (int64_t n = 0; n < w.block_rows / kLanes; ++n) {
    spreads[n].top_z = load(top_z + n * kLanes);
    spreads[n].top_reach = load(top_reach + n * kLanes);
  }
  sweep(w.block_rows, b.keys, spreads, [&](Spread& c, V j, int64_t at) {
    const V here = load(z + at), d = load(b.dz_hi + at);
    const I close = (j < c.count) & (c.top_z - here <= c.top_reach + reach_of(w, load(dot + at), here));
    c.number = c.number + select(close, all(1.0), zero());
    c.low = select(close & (d < c.low), d, c.low);
    c.high = select(close & (d > c.high), d, c.high);
    c.dot = select(close, larger(c.dot, load(dp_dot + at)), c.dot);
  });
}

inline void sum_differences(const Work& w, const Block& b, Spread* spreads) {
  const double *dp_dot = term_plane(w, b, kDpDot), *weight_dot = term_plane(w, b, kWeightDotQk);
  const double* weight_unit = term_plane(w, b, kWeightUnit);
  const V underflow = all(value_underflow(w));
  sweep(w.block_rows, b.keys, spreads, [&](Spread& s, V j, int64_t at) {
    const V p = load(b.w_hi + at);
    const Difference d = difference_of(s, j, load(b.dz_hi + at), load(dp_dot + at), underflow);
    const V unit = d.distance * (load(weight_unit + at) + all(kLost)) + p * d.unit + all(kUnderflow);
    s.size = s.size + p * d.distance;
    s.dot_qk = s.dot_qk + d.distance * load(weight_dot + at);
    s.dot_v = s.dot_v + p * d.dot_v;
    s.unit = s.unit + select(j < s.count, unit, zero());
  });
}

inline void fill_dz_planes(const Work& w, const Block& b, Spread* spreads) {
  const double *dp_dot = term_plane(w, b, kDpDot), *weight_dot = term_plane(w, b, kWeightDotQk);
  const double* weight_unit = term_plane(w, b, kWeightUnit);
  double *dz_dot = term_plane(w, b, kDzDotQk), *dz_unit = term_plane(w, b, kDzUnit), *dz_lse = term_plane(w, b, kDzLse);
  double *dz_v = term_plane(w, b, kDzDotV), *dz_sum = term_plane(w, b, kDzSumKv), *trivial = term_plane(w, b, kDzTrivial);
  const V underflow = all(value_underflow(w));
  sweep(w.block_rows, b.keys_padded, spreads, [&](Spread& s, V j, int64_t at) {
    const V p = load(b.w_hi + at), d = load(b.dz_hi + at), rest = d - s.s, size = absolute(rest + s.dlse);
    const Difference e = difference_of(s, j, d, load(dp_dot + at), underflow);
    const I visible = j < s.count;
    const V unit = p * (e.unit + s.unit + absolute(rest) + all(2.0) * size) + size * (load(weight_unit + at) + all(kLost));
    const V mean = p * s.size, own = p * size;
    store(dz_dot + at, select(visible, p * s.dot_qk + size * load(weight_dot + at), zero()));
    store(dz_v + at, select(visible, p * (e.dot_v + s.dot_v), zero()));
    store(dz_sum + at, select(visible, all(2.0) * mean + own, zero()));
    store(dz_unit + at, select(visible, unit + all(kUnderflow), zero()));
    store(dz_lse + at, select(visible, s.lse * (mean + own), zero()));
    store(trivial + at, select(visible, (p + all(kTiny)) * (absolute(d) + absolute(s.dlse) + s.size), zero()));
  });
}

inline void Softmax::difference_terms(const Work& w, Block& b, const Shift* shifts) {
  Spread spreads[kRowsMax / kLanes] = {};
  for (int64_t n = 0; n < w.block_rows / kLanes; ++n) {
    spreads[n].count = shifts[n].count;
    spreads[n].top = load(b.top + n * kLanes);
    spreads[n].s = shifts[n].sum.h;
    spreads[n].dlse = shifts[n].dlse;
    spreads[n].lse = absolute(load(b.lse + n * kLanes));
  }
  absolute_dots(w, b, w.v, w.dout, 1, term_plane(w, b, kDpDot));
  find_candidates(w, b, spreads);
  sum_differences(w, b, spreads);
  fill_dz_planes(w, b, spreads);
}

}  // namespace attest::certified::ATTEST_LANES_NAMESPACE
