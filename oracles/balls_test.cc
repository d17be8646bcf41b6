#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "harness/error.h"
#include "oracles/ball_reference.h"
#include "oracles/group_data.h"

namespace attest {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// One query, D = Dv = 1, q = scale = 1: the logits are z, dP_j = dout·v_j; stick-breaking sees every key.
struct OneQuery {
  std::vector<double> z, v;
  double dout = 1, dlse = 0, q = 1;

  BallReference of(Op op) const {
    GroupProblem p{op, 1, 1, static_cast<int64_t>(z.size())};
    p.causal = p.attend_current = op == Op::kStickBreaking;
    p.q = &q, p.k = z.data(), p.v = v.data(), p.dout = &dout, p.dlse = &dlse;
    return ball_reference(p, 256);
  }
};

double value(const BallReference& r, Quantity quantity, int64_t row = 0) {
  const Enclosed e = enclose(r[quantity].at(row, 0), false);
  EXPECT_LE(e.radius, 0x1p-53 * std::fabs(e.hi));  // 256 bits: nothing but the rounding to double
  return e.hi;
}

void expect_close(double actual, double expected) { EXPECT_NEAR(actual, expected, 8e-16 * std::fabs(expected)); }

TEST(Balls, two_keys_of_softmax_have_their_closed_form) {
  const BallReference r = OneQuery{{1, 0.5}, {4, -1}, 0.75, 0.5}.of(Op::kSoftmax);
  const double p = 1 / (1 + std::exp(-0.5)), dz = p * (1 - p) * 0.75 * 5;
  expect_close(value(r, Quantity::kOut), 4 * p - (1 - p));
  expect_close(value(r, Quantity::kLse), 1 + std::log1p(std::exp(-0.5)));
  expect_close(value(r, Quantity::kDk, 0), dz + 0.5 * p);
  expect_close(value(r, Quantity::kDk, 1), -dz + 0.5 * (1 - p));
  expect_close(value(r, Quantity::kDq), dz * 0.5 + 0.5 * (p + 0.5 * (1 - p)));
  expect_close(value(r, Quantity::kDv, 1), 0.75 * (1 - p));
}

TEST(Balls, a_saturated_pair_keeps_its_gradient) {
  const BallReference r = OneQuery{{-60, 60}, {2, -3}, 0.75}.of(Op::kSoftmax);
  expect_close(value(r, Quantity::kDk, 0), std::exp(-120.0) * 0.75 * 5);
  expect_close(value(r, Quantity::kLse), 60);
}

TEST(Balls, two_keys_of_stick_breaking_have_their_closed_form) {
  const BallReference r = OneQuery{{-0.75, 2}, {4, 8}, 0.5, 3}.of(Op::kStickBreaking);
  const auto beta = [](double z) { return 1 / (1 + std::exp(-z)); };
  const double near = beta(2), rest_near = beta(-2), far = beta(-0.75) * rest_near, rem = beta(0.75) * rest_near;
  expect_close(value(r, Quantity::kOut), 8 * near + 4 * far);
  expect_close(value(r, Quantity::kLse), rem);
  const double a_far = far * 2, a_near = near * 4, left = 3 * rem;
  expect_close(value(r, Quantity::kDk, 0), beta(0.75) * a_far - beta(-0.75) * left);
  expect_close(value(r, Quantity::kDk, 1), rest_near * a_near - near * (left + a_far));
  expect_close(value(r, Quantity::kDv, 0), 0.5 * far);
}

/// One KV head, two query heads, more rows than a block holds.
Case wide_case(Op op, LogitFill logits, KeyPadding padding = KeyPadding::kNone) {
  Case c;
  c.problem = {.op = op, .num_heads_q = 2, .seqlen_q = 70, .seqlen_kv = 90, .head_dim = 24, .head_dim_v = 22, .causal = true};
  c.problem.softmax_scale = default_softmax_scale(24);
  c.logits = logits;
  c.magnitude = takes_magnitude(logits) ? 3000.0F : 0.0F;
  c.padding = padding;
  c.dlse = true;
  c.seed = 5;
  return c;
}

struct Count {
  int64_t apart = 0, wider = 0;
};

/// Balls of two evaluations: those that do not overlap, and those of `fine` that are wider than those of `coarse`.
Count compare(const BallReference& coarse, const BallReference& fine) {
  Count count;
  for (size_t n = 0; n < coarse.of.size(); ++n)
    for (int64_t i = 0; i < coarse.of[n].rows(); ++i)
      for (int64_t d = 0; d < coarse.of[n].columns(); ++d) {
        const arb_srcptr a = coarse.of[n].at(i, d), b = fine.of[n].at(i, d);
        count.apart += arb_overlaps(a, b) == 0;
        count.wider += mag_cmp(arb_radref(b), arb_radref(a)) > 0;
      }
  return count;
}

TEST(Balls, evaluations_of_any_precision_overlap_and_more_bits_never_widen) {
  for (const Op op : {Op::kSoftmax, Op::kStickBreaking})
    for (const LogitFill fill : {LogitFill::kNormal, LogitFill::kSaturated, LogitFill::kCancelling, LogitFill::kSubnormal}) {
      const GroupData data = group_data(wide_case(op, fill));
      const BallReference fine = ball_reference(data.problem(), 1024);
      for (const int bits : {64, 128}) {
        const Count count = compare(ball_reference(data.problem(), bits), fine);
        EXPECT_EQ(count.apart, 0) << data.source << " at " << bits << " bits";
        EXPECT_EQ(count.wider, 0) << data.source << " at " << bits << " bits";
      }
    }
}

TEST(Balls, a_query_alone_has_the_values_it_has_in_its_block) {
  for (const Op op : {Op::kSoftmax, Op::kStickBreaking}) {
    const GroupData data = group_data(wide_case(op, LogitFill::kNormal, KeyPadding::kSome));
    const GroupProblem all = data.problem();
    const BallReference together = ball_reference(all, 128);
    for (const int64_t row : {0, 63, 64, 69, 70, 139}) {
      GroupProblem one = all;
      one.group = one.n_q = 1;
      one.n_kv = all.n_kv - all.n_q + row % all.n_q + 1;  // the keys up to its position
      one.q += row * all.head_dim, one.dout += row * all.head_dim_v, one.dlse += row;
      const BallReference alone = ball_reference(one, 128);
      for (const Quantity quantity : {Quantity::kOut, Quantity::kLse, Quantity::kDq})
        for (int64_t d = 0; d < alone[quantity].columns(); ++d)
          EXPECT_TRUE(arb_overlaps(alone[quantity].at(0, d), together[quantity].at(row, d))) << data.source << " row " << row;
    }
  }
}

TEST(Balls, what_nobody_sees_is_never_read) {
  for (const Op op : {Op::kSoftmax, Op::kStickBreaking}) {
    GroupData data = group_data(wide_case(op, LogitFill::kNormal, KeyPadding::kLeadingTile));  // NaN in the hidden keys
    const BallReference poisoned = ball_reference(data.problem(), 128);
    for (std::vector<double>* x : {&data.k, &data.v, &data.dlse})
      for (double& number : *x) number = std::isnan(number) ? 1 : number;
    const BallReference clean = ball_reference(data.problem(), 128);
    for (size_t n = 0; n < clean.of.size(); ++n) EXPECT_TRUE(arb_mat_equal(clean.of[n].get(), poisoned.of[n].get())) << n;
  }
}

TEST(Balls, without_a_visible_key_everything_is_exact) {
  for (const Op op : {Op::kSoftmax, Op::kStickBreaking}) {
    const GroupData data = group_data(wide_case(op, LogitFill::kNormal, KeyPadding::kLeadingTile));  // sees keys from 45 on
    GroupValues values(data.problem());
    GroupReference reference = values.reference();
    evaluate_balls(data.problem(), reference, 128);
    for (const Quantity quantity : {Quantity::kOut, Quantity::kLse, Quantity::kDq, Quantity::kDk, Quantity::kDv}) {
      const auto& x = values.of[static_cast<size_t>(quantity)];
      const double expected = quantity != Quantity::kLse ? 0 : op == Op::kSoftmax ? -kInf : 1;
      EXPECT_EQ(x.hi.front(), expected) << name_of(quantity);
      EXPECT_EQ(x.lo.front(), 0) << name_of(quantity);
      EXPECT_EQ(x.radius.front(), 0) << name_of(quantity);
      EXPECT_GT(x.radius[x.radius.size() * 3 / 4], 0) << name_of(quantity);
    }
  }
}

TEST(Balls, a_visible_nan_is_refused) {
  for (const double bad : {std::nan(""), kInf}) {
    GroupData data = group_data(wide_case(Op::kSoftmax, LogitFill::kNormal));
    data.k[5] = bad;
    EXPECT_THROW(ball_reference(data.problem(), 64), UsageError);
  }
}

/// |ball − hi − lo| ≤ radius, for its whole.
bool encloses(const Enclosed& e, arb_srcptr ball) {
  Ball x, lo(e.lo), radius(e.radius);
  arb_set_d(x, e.hi);
  arb_sub(x, ball, x, ARF_PREC_EXACT);
  arb_sub(x, x, lo, ARF_PREC_EXACT);
  arb_abs(x, x);
  return arb_le(x, radius);
}

TEST(Enclose, holds_the_whole_ball_in_doubles) {
  for (const slong exponent : {0, 1000, 1023, -900, -1022, -1060, -1074, -1075, -3000}) {
    for (const slong bits : {20, 60, 300}) {
      Ball third;
      arb_set_ui(third, 3);
      arb_inv(third, third, bits);
      arb_mul_2exp_si(third, third, exponent);
      for (const bool two : {false, true}) EXPECT_TRUE(encloses(enclose(third, two), third)) << exponent << ", " << bits;
    }
  }
}

TEST(Enclose, a_number_beyond_every_double_has_an_infinite_radius) {
  Ball huge(1);
  arb_mul_2exp_si(huge, huge, 5000);
  EXPECT_EQ(enclose(huge, true).radius, kInf);
  arb_indeterminate(huge);
  EXPECT_EQ(enclose(huge, true).radius, kInf);
}

TEST(Enclose, two_doubles_hold_106_bits) {
  Ball third;
  arb_set_ui(third, 3);
  arb_inv(third, third, 500);
  EXPECT_LE(enclose(third, true).radius, 0x1p-108);
  EXPECT_GE(enclose(third, true).radius, 0x1p-112);
}

}  // namespace
}  // namespace attest
