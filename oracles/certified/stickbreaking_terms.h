// Stick-breaking: the error terms of the weights and of dz. Sums run from the nearest key for the weights, from the farthest
// for dz, one vector of rows at a time.
#pragma once

#include "oracles/certified/stickbreaking.h"
#include "oracles/certified/terms.h"

namespace attest::certified::ATTEST_LANES_NAMESPACE {

/// ρ(β) = (1 − β) ε(z) + 8 [unit], ρ(1 − β) = β ε(z) + 8 [unit], and one unit more for each product.
inline void StickBreaking::weight_terms(const Work& w, Block& b) {
  struct Rest {
    V dot, unit, count;
  };
  Rest rests[kRowsMax / kLanes];
  for (int64_t n = 0; n < w.block_rows / kLanes; ++n) rests[n] = {zero(), zero(), load(w.count + b.first + n * kLanes)};
  const V underflow = all(logit_underflow(w)), units = all(kProbabilityUnits);
  const double *z = term_plane(w, b, kLogit), *dot = term_plane(w, b, kLogitDot);
  double *weight_dot = term_plane(w, b, kWeightDotQk), *weight_unit = term_plane(w, b, kWeightUnit);
  sweep<true>(w.block_rows, b.keys_padded, rests, [&](Rest& r, V j, int64_t at) {
    const V weight = load(b.w_hi + at), beta = load(b.beta_hi + at), rest = load(b.rest_hi + at);
    const V z_unit = all(2.0) * absolute(load(z + at)) + underflow;
    const I visible = j < r.count;
    store(weight_dot + at, select(visible, weight * (rest * load(dot + at) + r.dot), zero()));
    store(weight_unit + at, select(visible, weight * (rest * z_unit + units + r.unit + all(1.0)) + all(kLost), zero()));
    r.dot = r.dot + select(visible, beta * load(dot + at), zero());
    r.unit = r.unit + select(visible, beta * z_unit + units + all(1.0), zero());
  });
  double row_dot[kRowsMax], row_unit[kRowsMax];
  for (int64_t n = 0; n < w.block_rows / kLanes; ++n) {
    store(row_dot + n * kLanes, rests[n].dot);
    store(row_unit + n * kLanes, rests[n].unit);
  }
  for (int64_t i = 0; i < smaller(w.block_rows, w.rows - b.first); ++i) {
    const TermWriter write = {(*w.out)[Quantity::kLse], b.first + i};
    if (w.count[b.first + i] == 0) continue;
    write(ErrorSource::kDotQk, b.lse[i] * row_dot[i]);
    write(ErrorSource::kUnit, b.lse[i] * row_unit[i] + kLost);
    write.trivial(1);
    b.rem_dot[i] = b.lse[i] * row_dot[i];
    b.rem_unit[i] = b.lse[i] * row_unit[i] + kLost;
  }
}

inline void StickBreaking::difference_terms(const Work& w, Block& b) {
  struct Far {  // F, Σ|a| + |drem| rem, and what F may be off
    V sum, size, dot_qk, dot_v, unit, count;
  };
  Far fars[kRowsMax / kLanes];
  const double *z = term_plane(w, b, kLogit), *dot = term_plane(w, b, kLogitDot);
  const double *weight_dot = term_plane(w, b, kWeightDotQk), *weight_unit = term_plane(w, b, kWeightUnit);
  double* dp_dot = term_plane(w, b, kDpDot);
  absolute_dots(w, b, w.v, w.dout, 1, dp_dot);
  for (int64_t n = 0; n < w.block_rows / kLanes; ++n) {
    const V dlse = load(w.dlse + b.first + n * kLanes), sum = load(b.lse + n * kLanes) * dlse, size = absolute(sum);
    const V unit = absolute(dlse) * load(b.rem_unit + n * kLanes) + size + all(kUnderflow);
    fars[n] = {sum, size, absolute(dlse) * load(b.rem_dot + n * kLanes), zero(), unit, load(w.count + b.first + n * kLanes)};
  }
  const V logit = all(logit_underflow(w)), value = all(value_underflow(w)), underflow = all(kUnderflow);
  const V units = all(kProbabilityUnits);
  double *dz_dot = term_plane(w, b, kDzDotQk), *dz_unit = term_plane(w, b, kDzUnit), *dz_v = term_plane(w, b, kDzDotV);
  double *dz_sum = term_plane(w, b, kDzSumKv), *dz_trivial = term_plane(w, b, kDzTrivial);
  sweep(w.block_rows, b.keys_padded, fars, [&](Far& f, V j, int64_t at) {
    const I visible = j < f.count;
    const V weight = load(b.w_hi + at), beta = load(b.beta_hi + at), rest = load(b.rest_hi + at), z_dot = load(dot + at);
    const V dp = select(visible, load(b.dz_hi + at), zero()), a = weight * dp, a_size = absolute(a), far_size = absolute(f.sum);
    const V z_unit = all(2.0) * absolute(load(z + at)) + logit, near = rest * a_size, far = beta * far_size;
    const V a_dot = absolute(dp) * load(weight_dot + at), a_v = weight * load(dp_dot + at);
    const V a_unit = absolute(dp) * load(weight_unit + at) + weight * value + a_size + underflow;
    const V own = near * (beta * z_unit + units + all(1.0)) + far * (rest * z_unit + units + all(1.0));
    const V unit = own + rest * a_unit + beta * f.unit + absolute(rest * a - beta * f.sum) + all(2.0) * underflow +
                   all(kLost) * (a_size + far_size);
    store(dz_dot + at, select(visible, (near * beta + far * rest) * z_dot + rest * a_dot + beta * f.dot_qk, zero()));
    store(dz_v + at, select(visible, rest * a_v + beta * f.dot_v, zero()));
    store(dz_sum + at, select(visible, beta * f.size, zero()));
    store(dz_unit + at, select(visible, unit, zero()));
    store(dz_trivial + at, select(visible, rest * (weight + all(kTiny)) * absolute(dp) + beta * f.size, zero()));
    f.sum = f.sum + a;
    f.size = f.size + a_size;
    f.dot_qk = f.dot_qk + a_dot;
    f.dot_v = f.dot_v + select(visible, a_v, zero());
    f.unit = f.unit + select(visible, a_unit, zero());
  });
}

}  // namespace attest::certified::ATTEST_LANES_NAMESPACE
