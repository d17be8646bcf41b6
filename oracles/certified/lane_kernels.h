// The lane kernels: a block of rows, and a block's share of dk and dv, for one operator and one arithmetic. Included once for
// each machine, with ATTEST_LANES_NAMESPACE naming it. A test may include it again with a deliberate defect:
//   ATTEST_BREAK_COMPENSATION  the sums of tier 1 forget the rounding error of each addition
//   ATTEST_BREAK_CONTRACTION   the compiler fuses multiply and add, as it does without -ffp-contract=off
//   ATTEST_BREAK_BOUND         the bound on what is flushed to 0 is half of what it must be
#pragma once

#include "oracles/certified/measure.h"
#include "oracles/certified/softmax_dz_terms.h"
#include "oracles/certified/softmax_terms.h"
#include "oracles/certified/stickbreaking_terms.h"

namespace attest::certified::ATTEST_LANES_NAMESPACE {

template <class Arithmetic>
void write_rows(const Work& w, const Block& b, const GroupQuantity& to, const Side& side, double factor, double floor,
                const double* sums) {
  for (int64_t i = 0; i < smaller(w.block_rows, w.rows - b.first); ++i) {
    const int64_t row = b.first + i, from = i * side.padded;
    if (w.count[row] == 0) write_exactly(to, row * side.width, side.width, 0);
    else write<Arithmetic>(to, row * side.width, side.width, b.sum_hi + from, b.sum_lo + from, b.sum_bound + from, factor, floor,
                           sums);
  }
}

template <class Operator, class Arithmetic>
void rows(const Work& w, Block& b) {
  const double logit_loss = dots<Arithmetic>(w, b, w.k, w.q, b.w_hi, Arithmetic::kBounds ? b.w_lo : nullptr);
  if (w.terms) logit_terms(w, b);
  Operator::template weigh<Arithmetic>(w, b, logit_loss);
  if (w.terms) Operator::weight_terms(w, b);
  const double rounding = key_sum_error<Arithmetic>(b.keys);
  sum_over_keys<Arithmetic, true>(w, b, w.v, {b.w_hi, b.w_lo}, [&](int64_t key) {
    return kUp * (b.weight_error + b.weight_step * static_cast<double>(b.keys - key) + rounding);
  });
  write_rows<Arithmetic>(w, b, (*w.out)[Quantity::kOut], w.v, 1, b.weight_floor, w.v.sums);
  if (w.terms) terms_over_keys(w, b, w.v, weight_planes(w, b, false), Quantity::kOut);
  if (!w.backward) return;
  const double dp_loss = dots<Arithmetic>(w, b, w.v, w.dout, b.dz_hi, Arithmetic::kPair ? b.dz_lo : nullptr);
  Operator::template differentiate<Arithmetic>(w, b, dp_loss);
  sum_over_keys<Arithmetic, false>(w, b, w.k, {b.dz_hi, b.dz_lo, b.dz_bound}, [](int64_t) { return 1.0; });
  write_rows<Arithmetic>(w, b, (*w.out)[Quantity::kDq], w.k, w.scale, 0, nullptr);
  if (w.terms) terms_over_keys(w, b, w.k, dz_planes(w, b), Quantity::kDq);
}

template <class Arithmetic>
void keys(const Work& w, const Block& b, int64_t begin, int64_t end) {
  const double rounding = row_sum_error<Arithmetic>(w);
  for (; begin < smaller(end, b.keys_padded); begin += kKeyTile) {
    const int64_t stop = smaller(smaller(begin + kKeyTile, end), b.keys_padded);
    const double factor = kUp * (b.weight_error + b.weight_step * static_cast<double>(b.keys - begin) + rounding);
    sum_over_rows<Arithmetic, false>(w, b, w.q, w.dk, {b.dz_hi, b.dz_lo, b.dz_bound}, begin, stop, 1);
    sum_over_rows<Arithmetic, true>(w, b, w.dout, w.dv, {b.w_hi, b.w_lo}, begin, stop, factor);
    if (w.terms) {
      terms_over_rows(w, b, w.q, w.dk, dz_planes(w, b), begin, stop);
      terms_over_rows(w, b, w.dout, w.dv, weight_planes(w, b, true), begin, stop);
    }
  }
}

template <class Operator, class Arithmetic>
void finish(const Work& w, int64_t begin, int64_t end) {
  for (int64_t j = begin; j < smaller(end, w.keys); ++j) {
    const int64_t to = w.key_index[j], k = j * w.q.padded, v = j * w.dout.padded;
    write<Arithmetic>((*w.out)[Quantity::kDk], to * w.q.width, w.q.width, w.dk.hi + k, w.dk.lo + k, w.dk.bound + k, w.scale, 0,
                      nullptr);
    write<Arithmetic>((*w.out)[Quantity::kDv], to * w.dout.width, w.dout.width, w.dv.hi + v, w.dv.lo + v, w.dv.bound + v, 1,
                      Operator::kWeightFloor, w.dout.sums);
    if (!w.terms) continue;
    finish_terms(w, w.q, w.dk, Quantity::kDk, j);
    finish_terms(w, w.dout, w.dv, Quantity::kDv, j);
  }
}

template <class Operator, class Arithmetic>
constexpr LaneKernels kernels_of() {
  return {rows<Operator, Arithmetic>, keys<Arithmetic>, finish<Operator, Arithmetic>};
}
template <class Operator>
constexpr OperatorKernels kernels_of() {
  return {{kernels_of<Operator, Double>(), kernels_of<Operator, DoubleDouble>(), kernels_of<Operator, Plain>()}};
}
inline constexpr Lanes make_lanes(const char* name) {
  return {name, {kernels_of<Softmax>(), kernels_of<StickBreaking>()}, measure_row};
}

}  // namespace attest::certified::ATTEST_LANES_NAMESPACE
