// The claims of oracles/certified/exp_tables.h, proved for every argument: rounding errors as forms, truth as Taylor series with
// balls for coefficients.
#include <gtest/gtest.h>

#include <cmath>

#include "oracles/exp_proof/program.h"

namespace attest::exp_proof {
namespace {

using namespace certified;

constexpr double kMostSteps = 55401;       // |k|: 64·600 / ln 2, rounded
constexpr double kLowMost = 0x1p-15;       // of the argument's low part
constexpr double kUnderflow = 0x1p-200;    // relative: a low part of 2^-1075 of a result above 2^-866

/// 2^(j/64).
void set_power(arb_ptr power, int j) {
  Ball exponent;
  const Ball two(2);
  arb_set_si(exponent, j);
  arb_mul_2exp_si(exponent, exponent, -6);
  arb_pow(power, two, exponent, kBits);
}

/// ln2/64.
void set_step(arb_ptr step) {
  arb_const_log2(step, kBits);
  arb_mul_2exp_si(step, step, -6);
}

/// |ln2/64 − Σ parts|, at most.
double step_error(std::initializer_list<double> parts) {
  Ball rest;
  set_step(rest);
  for (const double part : parts) arb_sub(rest, rest, Ball(part), kBits);
  return upper(rest);
}

/// Σ factor·ρ^n/n!, with what is left of the series in the constant.
Polynomial exponential(arb_srcptr factor, double reach) {
  constexpr slong kDegree = 24;
  Polynomial series;
  Ball term, reach_power(1);
  arb_set(term, factor);
  for (slong n = 0; n <= kDegree; ++n) {
    series.set(n, term);
    arb_div_ui(term, term, n + 1, kBits);
    arb_mul(reach_power, reach_power, Ball(reach), kBits);
  }
  arb_mul(reach_power, reach_power, term, kBits);
  series.blur(2 * upper(reach_power));
  return series;
}

/// |form − 2^(j/64) e^ρ| / (2^(j/64) e^ρ), at most, over the box.
double relative_error(const Form& form, int j, double low, double high) {
  const Box box(low, high);
  Ball power;
  set_power(power, j);
  const double error = (form.center() - exponential(power, std::max(-low, high))).most(box.rho()) + form.noise_most();
  Ball least;
  arb_set_d(least, low);
  arb_exp(least, least, kBits);
  arb_mul(least, least, power, kBits);
  return error / lower(least) * (1 + 0x1p-40);
}

double half_ulp(double size) { return std::ldexp(1.0, std::ilogb(size) - 53); }

/// How far the reduced argument may be from the true one.
double reduction_error(bool in_double) {
  const double spacing = half_ulp(0x1p-7 - 0x1p-60);  // of what is below 2^-7
  if (in_double) return 2 * spacing + kMostSteps * step_error({kStep1, kStep23});
  const double low = 2 * spacing, with_third = low + kMostSteps * kStep3;
  return half_ulp(low) + half_ulp(with_third) + kMostSteps * step_error({kStep1, kStep2, kStep3});
}

/// Of a result that is off by `error`, for an argument that is off by `argument`.
double with_argument(double error, double argument) { return (error + 2 * argument) * (1 + 0x1p-30) + kUnderflow; }

/// Between them all |ρ| ≤ kExpReach. Boxes but the innermost are narrow enough to see that |a| ≥ |b| where fast_two_sum needs
/// it, in midpoint-radius arithmetic with radii of 30 bits; within 2^-92 the worst that it may lose is small enough.
constexpr double kBoxEnds[] = {0,        0x1p-92, 0x1p-76, 0x1p-60, 0x1p-44, 0x1p-30, 0x1p-20, 0x1p-12,
                               0x1p-9, kExpReach * (1 + 0x1p-40)};

template <class Check>
void for_each_box(const Check& check) {
  for (size_t n = 1; n < std::size(kBoxEnds); ++n) {
    check(kBoxEnds[n - 1], kBoxEnds[n]);
    check(-kBoxEnds[n], -kBoxEnds[n - 1]);
  }
}

double proved_pair_error(const Constants& c) {
  double worst = 0;
  for_each_box([&](double low, double high) {
    Box box(low, high);
    const Form rho(box, Polynomial::variable()), error = rho.rounding();
    const Pair<Form> p = exp_minus_one<Form>({rho + error, -error}, c);
    for (int j = 0; j < 64; ++j) {
      const Pair<Form> y = times_power(p, c, j);
      worst = std::max(worst, relative_error(y.h + y.l, j, low, high));
    }
  });
  return with_argument(worst, reduction_error(false));
}

double proved_double_error(const Constants& c) {
  double worst = 0;
  for_each_box([&](double low, double high) {
    Box box(low, high);
    for (int j = 0; j < 64; ++j)
      worst = std::max(worst, relative_error(exp_in_double(Form(box, Polynomial::variable()), c, j), j, low, high));
  });
  return with_argument(worst, reduction_error(true));
}

TEST(ExpProof, the_steps_have_33_bits_so_that_their_multiples_are_exact) {
  for (const double step : {kStep1, kStep2}) {
    const double bits = std::ldexp(step, 32 - std::ilogb(step));
    EXPECT_EQ(bits, std::floor(bits));
  }
  EXPECT_LT(kMostSteps, 0x1p16);  // 16 + 33 ≤ 53
  EXPECT_GT(kMostSteps, 1 - kExpLowest * kStepsPerUnit);
}

// fma(−k, kStep1, h) is exact: for k ≠ 0 both operands are multiples of 2^-60, and their difference is below 2^-7.
TEST(ExpProof, the_first_step_of_the_reduction_is_exact) {
  EXPECT_GE((0.5 - 0x1p-20) / kStepsPerUnit, 0x1p-8);  // |h| for k ≠ 0: spaced by 2^-60 at least
  EXPECT_EQ(std::ldexp(kStep1, 60), std::floor(std::ldexp(kStep1, 60)));
  EXPECT_LT(kExpReach + kMostSteps * (kStep2 + kStep3) + kLowMost, 0x1p-7);
}

TEST(ExpProof, the_reduced_argument_lies_within_reach) {
  Ball step, ratio;
  set_step(step);
  arb_inv(ratio, step, kBits);
  arb_sub(ratio, ratio, Ball(kStepsPerUnit), kBits);  // k is off from 64·h/ln 2 by ≤ 1/2 + |h|·this
  const double steps = 0.5 + 600 * upper(ratio);
  EXPECT_LE(steps * upper(step) * (1 + 0x1p-40) + kLowMost + reduction_error(true), kExpReach);
}

TEST(ExpProof, what_is_flushed_is_below_its_bound) {
  Ball least(kExpLowest);
  arb_exp(least, least, kBits);
  EXPECT_LT(upper(least), kExpFlush);
}

TEST(ExpProof, the_pair_keeps_its_claim_for_every_argument) {
  const double proved = proved_pair_error(engine_constants());
  RecordProperty("proved_log2", std::to_string(std::log2(proved)));
  EXPECT_LE(proved, kExpDoubleDoubleError) << "2^" << std::log2(proved);
}

TEST(ExpProof, the_double_keeps_its_claim_for_every_argument) {
  const double proved = proved_double_error(engine_constants());
  RecordProperty("proved_log2", std::to_string(std::log2(proved)));
  EXPECT_LE(proved, kExpDoubleError) << proved / 0x1p-53 << " u";
}

TEST(ExpProof, a_wrong_constant_breaks_the_proof) {
  Constants power = engine_constants(), inverse = engine_constants(), leading = engine_constants();
  power.power_low[37] *= 1 + 0x1p-45;
  inverse.inverse_low[2] = -inverse.inverse_low[2];
  leading.power[5] += 0x1p-51;
  EXPECT_GT(proved_pair_error(power), kExpDoubleDoubleError);
  EXPECT_GT(proved_pair_error(inverse), kExpDoubleDoubleError);
  EXPECT_GT(proved_double_error(leading), kExpDoubleError);
}

}  // namespace
}  // namespace attest::exp_proof
