// Softmax on a block of rows, backward: dout·v → dz and its bound. Lanes are rows.
#pragma once

#include "oracles/certified/softmax.h"

namespace attest::certified::ATTEST_LANES_NAMESPACE {

/// d_j = dP_j − dP_*, s = Σ P d.
template <class Arithmetic>
void Softmax::subtract_top(const Work& w, const Block& b, Shift* shifts) {
  double base_hi[kRowsMax], base_lo[kRowsMax];
  for (int64_t i = 0; i < w.block_rows; ++i) {
    const int64_t at = static_cast<int64_t>(b.top[i]) * w.block_rows + i;
    const bool some = w.count[b.first + i] > 0;
    base_hi[i] = some ? b.dz_hi[at] : 0;
    base_lo[i] = some && Arithmetic::kPair ? b.dz_lo[at] : 0;
  }
  for (int64_t n = 0; n < w.block_rows / kLanes; ++n) {
    const int64_t at = b.first + n * kLanes;
    shifts[n] = Shift{load<Arithmetic>(base_hi, base_lo, n * kLanes), {zero(), zero()}, load(w.count + at), load(w.dlse + at),
                      zero(), zero(), zero()};
  }
  sweep(w.block_rows, b.keys, shifts, [&](Shift& s, V j, int64_t at) {
    const Two p = load<Arithmetic>(b.w_hi, b.w_lo, at), dp = load<Arithmetic>(b.dz_hi, b.dz_lo, at);
    const Two d = select(j < s.count, Arithmetic::add(dp, -s.base), Two{zero(), zero()});
    store<Arithmetic>(b.dz_hi, b.dz_lo, at, d);
    s.sum = Arithmetic::accumulate(s.sum, Arithmetic::mul(p, d));
    if constexpr (Arithmetic::kBounds) s.size = fma(p.h, absolute(d.h), s.size);
  });
}

template <class Arithmetic>
void Softmax::bound_shifts(const Work& w, const Block& b, double dp_loss, Shift* shifts) {
  const double keys = static_cast<double>(b.keys);
  const double sum_unit = b.weight_error + Arithmetic::kMul + Arithmetic::kAdd + Arithmetic::kRead + keys * Arithmetic::kAccumulate;
  for (int64_t n = 0; n < w.block_rows / kLanes; ++n) {
    Shift& shift = shifts[n];
    const V dp = all(w.v.largest_norm) * load(w.dout.norms + b.first + n * kLanes), dp_error = all(kUp * dp_loss) * dp;
    const V s_error = all(kUp * sum_unit) * shift.size + all(2 * kUp) * dp_error + all(4 * b.weight_floor * keys) * dp;
    const V s = absolute(shift.sum.h), dlse = absolute(shift.dlse);
    shift.constant = all(kUp) * (all(2.0) * dp_error + s_error + all(Arithmetic::kAdd) * (all(2.0) * s + dlse));
    shift.floor = all(kUp * b.weight_floor) * (all(4.0) * dp + dlse) + all(kFloor);
  }
}

/// t = d − s + dlse, dz = P t.
template <class Arithmetic>
void Softmax::multiply_weights(const Work& w, const Block& b, Shift* shifts) {
  const V relative = all(kUp * (b.weight_error + Arithmetic::kMul + Arithmetic::kMulDouble +
                                greater(key_sum_error<Arithmetic>(b.keys), row_sum_error<Arithmetic>(w))));
  sweep(w.block_rows, b.keys_padded, shifts, [&](Shift& s, V j, int64_t at) {
    const Two p = load<Arithmetic>(b.w_hi, b.w_lo, at), d = load<Arithmetic>(b.dz_hi, b.dz_lo, at);
    const Two t = Arithmetic::add_double(Arithmetic::add(d, -s.sum), s.dlse);
    const Two dz = Arithmetic::mul(p, t);
    store<Arithmetic>(b.dz_hi, b.dz_lo, at, select(j < s.count, dz, Two{zero(), zero()}));
    if constexpr (Arithmetic::kBounds) {
      const V constant = fma(all(3 * kUp * Arithmetic::kAdd), absolute(d.h), s.constant);
      const V bound = fma(p.h, constant, fma(absolute(dz.h), relative, s.floor));
      store(b.dz_bound + at, select(j < s.count, bound, zero()));
    }
  });
}

template <class Arithmetic>
void Softmax::differentiate(const Work& w, Block& b, double dp_loss) {
  Shift shifts[kRowsMax / kLanes];
  subtract_top<Arithmetic>(w, b, shifts);
  if (w.terms) difference_terms(w, b, shifts);
  bound_shifts<Arithmetic>(w, b, dp_loss, shifts);
  multiply_weights<Arithmetic>(w, b, shifts);
}

}  // namespace attest::certified::ATTEST_LANES_NAMESPACE
