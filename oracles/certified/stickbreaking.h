// Stick-breaking on a block of rows: logits → A and rem; dout·v → dz. Lanes are rows. No logarithm, and no difference of
// nearly equal numbers: see oracles/README.md; bounds: README.md.
#pragma once

#include "oracles/certified/sums.h"
#include "oracles/certified/write.h"

namespace attest::certified::ATTEST_LANES_NAMESPACE {

struct StickBreaking {
  static constexpr double kNoKey = 1;
  static constexpr double kSmallestRest = 0x1p-800;  // what is left of a stick below this counts as nothing
#ifdef ATTEST_BREAK_BOUND
  static constexpr double kWeightFloor = kUp * kSmallestRest / 2;
#else
  static constexpr double kWeightFloor = kUp * kSmallestRest;
#endif

  template <class Arithmetic>
  static void weigh(const Work& w, Block& b, double logit_loss);
  template <class Arithmetic>
  static void differentiate(const Work& w, Block& b, double dp_loss);
  static void weight_terms(const Work& w, Block& b);

 private:
  static void difference_terms(const Work& w, Block& b);
  template <class Arithmetic>
  static double fraction_error(const Work& w, const Block& b, double logit_loss);
  template <class Arithmetic>
  static void write_rem(const Work& w, const Block& b);
};

/// Relative error of β, of 1 − β, and of the product that either enters: the largest of the block, or infinity.
template <class Arithmetic>
double StickBreaking::fraction_error(const Work& w, const Block& b, double logit_loss) {
  double worst = 0;
  for (int64_t i = 0; i < w.block_rows; ++i) {
    const double size = kUp * magnitude(w.scale) * w.q.norms[b.first + i] * w.k.largest_norm;  // ≥ |z|
    const double whole = 6 * kU * kU * size + kUp * logit_loss * size;
    const double argument = 6 * kU * kU * lesser(size, 1 - kExpLowest) + kUp * logit_loss * size;
    worst = greater(worst, whole <= 0x1p-6 ? argument : kInfinity);
  }
  const double e = kUp * worst + (Arithmetic::kPair ? kExpDoubleDoubleError : kExpDoubleError) + kExpFlush;
  const double error = kUp * (2 * e + Arithmetic::kAdd + Arithmetic::kReciprocal + 2 * Arithmetic::kMul);
  return error * static_cast<double>(b.keys + 1) <= 0x1p-8 ? error : kInfinity;
}

template <class Arithmetic>
void StickBreaking::write_rem(const Work& w, const Block& b) {
  const GroupQuantity& to = (*w.out)[Quantity::kLse];
  for (int64_t i = 0; i < smaller(w.block_rows, w.rows - b.first); ++i) {
    const double hi = b.rem_hi[i], lo = Arithmetic::kPair ? b.rem_lo[i] : 0, keys = w.count[b.first + i];
    double radius = kUp * keys * b.weight_step * hi + kWeightFloor;
    if (to.lo == nullptr) radius += magnitude(lo);
    b.lse[i] = hi;
    b.flush[i] = 1;
    if (keys == 0) write_exactly(to, b.first + i, 1, kNoKey);
    else write_one(to, b.first + i, hi, lo, radius);
  }
}

/// β_j and 1 − β_j from e^−|z_j|; A_j = β_j r_j and r_j = ∏_{l > j} (1 − β_l), from the nearest key on.
template <class Arithmetic>
void StickBreaking::weigh(const Work& w, Block& b, double logit_loss) {
  struct Stick {  // of one vector of rows
    Two rest;
    V count;
  };
  Stick sticks[kRowsMax / kLanes];
  const Two one = {all(1.0), zero()}, none = {zero(), zero()};
  const V scale = all(w.scale);
  for (int64_t n = 0; n < w.block_rows / kLanes; ++n) sticks[n] = {one, load(w.count + b.first + n * kLanes)};
  sweep<true>(w.block_rows, b.keys_padded, sticks, [&](Stick& s, V j, int64_t at) {
    Two z = two_product(load(b.w_hi + at), scale);
    if constexpr (Arithmetic::kBounds) z.l = fma(load(b.w_lo + at), scale, z.l);
    const I positive = z.h > zero();
    const Two e = exponential<Arithmetic>(select(positive, -z, z));
    const Two large = Arithmetic::reciprocal(Arithmetic::add_double(e, all(1.0))), small = Arithmetic::mul(e, large);
    const I visible = j < s.count;
    const Two beta = select(visible, select(positive, large, small), none);
    const Two rest = select(visible, select(positive, small, large), one);
    store<Arithmetic>(b.w_hi, b.w_lo, at, Arithmetic::mul(beta, s.rest));
    store<Arithmetic>(b.beta_hi, b.beta_lo, at, beta);
    store<Arithmetic>(b.rest_hi, b.rest_lo, at, rest);
    const Two left = Arithmetic::mul(s.rest, rest);
    s.rest = select(left.h < all(kSmallestRest), none, left);
  });
  b.weight_error = 0;
  b.weight_step = kUp * fraction_error<Arithmetic>(w, b, logit_loss);
  b.weight_floor = kWeightFloor;
  for (int64_t n = 0; n < w.block_rows / kLanes; ++n) store<Arithmetic>(b.rem_hi, b.rem_lo, n * kLanes, sticks[n].rest);
  write_rem<Arithmetic>(w, b);
}

/// a_j = A_j dP_j; F_j = Σ_{l < j} a_l + drem·rem; dz_j = (1 − β_j) a_j − β_j F_j, from the farthest key on.
template <class Arithmetic>
void StickBreaking::differentiate(const Work& w, Block& b, double dp_loss) {
  struct Far {  // of one vector of rows; error bounds F
    Two sum;
    V error, count, dp_error, dp_floor, floor;
  };
  if (w.terms) difference_terms(w, b);
  Far fars[kRowsMax / kLanes];
  const V step = all(kUp * b.weight_step);
  const V product = all(kUp * (b.weight_step + 2 * Arithmetic::kMul + Arithmetic::kAdd + Arithmetic::kRead));
  const V result = all(kUp * (Arithmetic::kMulDouble +
                              greater(key_sum_error<Arithmetic>(b.keys), row_sum_error<Arithmetic>(w))));
  for (int64_t n = 0; n < w.block_rows / kLanes; ++n) {
    const int64_t at = b.first + n * kLanes;
    const V dlse = load(w.dlse + at), count = load(w.count + at), dp = all(kUp * w.v.largest_norm) * load(w.dout.norms + at);
    const Two sum = Arithmetic::mul_double(load<Arithmetic>(b.rem_hi, b.rem_lo, n * kLanes), dlse);
    const V relative = step * count + all(kUp * Arithmetic::kMulDouble);
    const V error = absolute(sum.h) * relative + all(kUp * b.weight_floor) * absolute(dlse);
    fars[n] = {sum, error, count, all(kUp * dp_loss) * dp, all(2 * b.weight_floor) * dp,
               all(2 * b.weight_floor) * (dp + absolute(dlse)) + all(kFloor)};
  }
  sweep(w.block_rows, b.keys_padded, fars, [&](Far& f, V j, int64_t at) {
    const I visible = j < f.count;
    const Two weight = load<Arithmetic>(b.w_hi, b.w_lo, at), beta = load<Arithmetic>(b.beta_hi, b.beta_lo, at);
    const Two rest = load<Arithmetic>(b.rest_hi, b.rest_lo, at);
    const Two dp = select(visible, load<Arithmetic>(b.dz_hi, b.dz_lo, at), Two{zero(), zero()});
    const Two a = Arithmetic::mul(weight, dp);
    const Two near = Arithmetic::mul(rest, a), far = Arithmetic::mul(beta, f.sum);
    const Two dz = Arithmetic::add(near, -far);
    store<Arithmetic>(b.dz_hi, b.dz_lo, at, dz);
    f.sum = Arithmetic::accumulate(f.sum, a);
    if constexpr (Arithmetic::kBounds) {
      const V size = absolute(a.h);
      const V a_error = fma(size, fma(step, f.count - j, all(kUp * Arithmetic::kMul)), fma(weight.h, f.dp_error, f.dp_floor));
      V bound = fma(rest.h, a_error, fma(beta.h, f.error, f.floor));
      bound = fma(absolute(near.h) + absolute(far.h), product, fma(absolute(dz.h), result, bound));
      store(b.dz_bound + at, select(visible, bound, zero()));
      f.error = f.error + select(visible, fma(all(kUp * Arithmetic::kAccumulate), absolute(f.sum.h), a_error), zero());
    }
  });
}

}  // namespace attest::certified::ATTEST_LANES_NAMESPACE
