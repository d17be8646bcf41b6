// Softmax on a block of rows: logits → P and lse. Lanes are rows. Formulas: oracles/README.md; bounds: README.md.
#pragma once

#include "oracles/certified/sums.h"
#include "oracles/certified/write.h"

namespace attest::certified::ATTEST_LANES_NAMESPACE {

struct Softmax {
  static constexpr double kNoKey = -kInfinity;
#ifdef ATTEST_BREAK_BOUND
  static constexpr double kWeightFloor = kUp * kExpFlush / 2;
#else
  static constexpr double kWeightFloor = kUp * kExpFlush;
#endif

  template <class Arithmetic>
  static void weigh(const Work& w, Block& b, double logit_loss);
  template <class Arithmetic>
  static void differentiate(const Work& w, Block& b, double dp_loss);  // softmax_backward.h
  static void weight_terms(const Work& w, Block& b);

 private:
  struct Row {  // of one vector of rows
    V count, top;
    Two max, sum, inverse;
  };
  struct Shift {  // of one vector of rows: dP_*, s, Σ P|d|, and what bounds dz
    Two base, sum;
    V count, dlse, size, constant, floor;
  };
  template <class Arithmetic>
  static void find_maximum(const Work& w, const Block& b, Row* rows);
  template <class Arithmetic>
  static void exponentials(const Work& w, const Block& b, Row* rows);
  template <class Arithmetic>
  static void write_lse(const Work& w, const Block& b, const Row* rows, const double* sum_error);
  template <class Arithmetic>
  static void subtract_top(const Work& w, const Block& b, Shift* shifts);
  template <class Arithmetic>
  static void bound_shifts(const Work& w, const Block& b, double dp_loss, Shift* shifts);
  template <class Arithmetic>
  static void multiply_weights(const Work& w, const Block& b, Shift* shifts);
  static void difference_terms(const Work& w, Block& b, const Shift* shifts);  // softmax_terms.h
  template <class Arithmetic>
  static double bound_sums(const Work& w, const Block& b, double logit_loss, const double* max, double* sum_error);
};

/// z_j as pairs, in every arithmetic with bounds: large logits differ in their low parts too.
template <class Arithmetic>
void Softmax::find_maximum(const Work& w, const Block& b, Row* rows) {
  const V scale = all(w.scale);
  sweep(w.block_rows, b.keys_padded, rows, [&](Row& r, V j, int64_t at) {
    Two z = {load(b.w_hi + at) * scale, zero()};
    if constexpr (Arithmetic::kBounds) {
      z = two_product(load(b.w_hi + at), scale);
      z = fast_two_sum(z.h, fma(load(b.w_lo + at), scale, z.l));
      store(b.w_lo + at, z.l);
    }
    store(b.w_hi + at, z.h);
    const I better = (j < r.count) & ((z.h > r.max.h) | ((z.h == r.max.h) & (z.l > r.max.l)));
    r.max = select(better, z, r.max);
    r.top = select(better, j, r.top);
  });
}

/// E_j = e^(z_j − m) and Σ E.
template <class Arithmetic>
void Softmax::exponentials(const Work& w, const Block& b, Row* rows) {
  sweep(w.block_rows, b.keys_padded, rows, [&](Row& r, V j, int64_t at) {
    Two x = {load(b.w_hi + at) - r.max.h, zero()};
    if constexpr (Arithmetic::kBounds) {
      x = two_sum(load(b.w_hi + at), -r.max.h);
      x = two_sum(x.h, x.l + (load(b.w_lo + at) - r.max.l));
    }
    const Two e = select(j < r.count, exponential<Arithmetic>(x), Two{zero(), zero()});
    store<Arithmetic>(b.w_hi, b.w_lo, at, e);
    r.sum = Arithmetic::accumulate(r.sum, e);
  });
}

/// Relative errors of Σ E per row, and the largest of P, or infinity.
template <class Arithmetic>
double Softmax::bound_sums(const Work& w, const Block& b, double logit_loss, const double* max, double* sum_error) {
  const double scale = magnitude(w.scale), keys = static_cast<double>(b.keys);
  double worst = 0;
  for (int64_t i = 0; i < w.block_rows; ++i) {
    sum_error[i] = 0;
    if (w.count[b.first + i] == 0) continue;
    const double size = kUp * scale * w.q.norms[b.first + i] * w.k.largest_norm;  // ≥ |z|
    const double reach = lesser(2 * size, 1 - kExpLowest);                    // ≥ |z − m| where E is not flushed
    const double argument = 7 * kU * kU * (magnitude(max[i]) + reach) + kUp * logit_loss * size;
    const double e = kUp * argument + (Arithmetic::kPair ? kExpDoubleDoubleError : kExpDoubleError);
    sum_error[i] = kUp * (e + keys * (Arithmetic::kAccumulate + kExpFlush));
    double p = kUp * (e + sum_error[i] + Arithmetic::kRead + Arithmetic::kReciprocal + Arithmetic::kMul);
    if (!(argument <= 0x1p-6 && p <= 0x1p-8)) p = sum_error[i] = kInfinity;
    worst = greater(worst, p);
  }
  return worst;
}

template <class Arithmetic>
void Softmax::write_lse(const Work& w, const Block& b, const Row* rows, const double* sum_error) {
  const GroupQuantity& to = (*w.out)[Quantity::kLse];
  double hi[kRowsMax], lo[kRowsMax], radius[kRowsMax];
  for (int64_t n = 0; n < w.block_rows / kLanes; ++n) {
    const Two log = log_double_double(rows[n].sum), lse = DoubleDouble::add(rows[n].max, log);
    const V own = all(kLogError) * (all(1.0) + absolute(log.h)) + all(DoubleDouble::kAdd) * absolute(lse.h);
    V r = all(kUp) * (load(sum_error + n * kLanes) + own) + all(kFloor);
    if (to.lo == nullptr) r = r + absolute(lse.l);
    store(hi + n * kLanes, lse.h);
    store(lo + n * kLanes, lse.l);
    store(radius + n * kLanes, r);
    store(b.lse + n * kLanes, select(rows[n].count > zero(), lse.h, zero()));
  }
  for (int64_t i = 0; i < smaller(w.block_rows, w.rows - b.first); ++i) {
    const int64_t at = b.first + i;
    if (w.count[at] == 0) write_exactly(to, at, 1, kNoKey);
    else write_one(to, at, hi[i], lo[i], radius[i]);
  }
}

template <class Arithmetic>
void Softmax::weigh(const Work& w, Block& b, double logit_loss) {
  Row rows[kRowsMax / kLanes];
  double max[kRowsMax], sum_error[kRowsMax];
  for (int64_t n = 0; n < w.block_rows / kLanes; ++n)
    rows[n] = Row{load(w.count + b.first + n * kLanes), zero(), {all(-kInfinity), zero()}, {zero(), zero()}, {zero(), zero()}};
  find_maximum<Arithmetic>(w, b, rows);
  exponentials<Arithmetic>(w, b, rows);
  for (int64_t n = 0; n < w.block_rows / kLanes; ++n) {
    store(max + n * kLanes, rows[n].max.h);
    store(b.top + n * kLanes, rows[n].top);
    store(b.flush + n * kLanes, all(1.0) / larger(rows[n].sum.h, all(0.5)));
    const I some = rows[n].count > zero();
    rows[n].inverse = Arithmetic::reciprocal(select(some, rows[n].sum, Two{all(1.0), zero()}));
  }
  b.weight_error = bound_sums<Arithmetic>(w, b, logit_loss, max, sum_error);
  b.weight_step = 0;
  b.weight_floor = kWeightFloor;
  write_lse<Arithmetic>(w, b, rows, sum_error);
  sweep(w.block_rows, b.keys, rows, [&](Row& r, V, int64_t at) {
    store<Arithmetic>(b.w_hi, b.w_lo, at, Arithmetic::mul(load<Arithmetic>(b.w_hi, b.w_lo, at), r.inverse));
  });
}

}  // namespace attest::certified::ATTEST_LANES_NAMESPACE
