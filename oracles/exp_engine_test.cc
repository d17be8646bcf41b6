// What exp_proof_test.cc proves about a program is true of the engine, since the two agree in every bit; and log, which stands
// on exp.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "harness/philox.h"
#include "oracles/exp_proof/engine_exp.h"
#include "oracles/exp_proof/program.h"

namespace attest::exp_proof {
namespace {

struct Numbers {
  std::vector<double> h, l;
  explicit Numbers(size_t n) : h(n), l(n) {}
  Pairs pairs() { return {h.data(), l.data()}; }
};

/// Uniform in [0, 1).
double uniform(uint32_t index, uint32_t stream) {
  const PhiloxBlock block = philox({index, stream, 0, 0}, {20, 26});
  return static_cast<double>((uint64_t{block[0]} << 32 | block[1]) >> 11) * 0x1p-53;
}

/// Where k turns into k + 1.
double halfway(double k) { return (k + 0.5) / certified::kStepsPerUnit; }

/// Arguments of every size: whole range, near multiples of ln2/128 where k changes, near 0, and the ends.
Numbers arguments(uint32_t n) {
  Numbers x(n);
  for (uint32_t i = 0; i < n; ++i) {
    const double u = uniform(i, 0);
    switch (i % 4) {
      case 0: x.h[i] = 1 - 601 * u; break;
      case 1: x.h[i] = halfway(std::floor(-55400 * u)) * (1 + (uniform(i, 1) - 0.5) * 0x1p-40); break;
      case 2: x.h[i] = std::ldexp(uniform(i, 1) - 0.5, static_cast<int>(-1060 * u)); break;
      default: x.h[i] = i % 8 == 3 ? certified::kExpLowest + 2 * (u - 0.5) : 1 - u * 0x1p-20;
    }
    if (x.h[i] < -601) x.h[i] = -601;
    x.l[i] = (uniform(i, 2) - 0.5) * (i % 3 == 0 ? 0x1p-14 : std::fabs(x.h[i]) * 0x1p-53);
  }
  return x;
}

bool cpu_has_lanes() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool same_bits(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

constexpr uint32_t kArguments = 1 << 18;

TEST(ExpEngine, computes_the_bits_of_the_program_that_is_proved) {
  if (!cpu_has_lanes()) GTEST_SKIP() << "this CPU has no AVX2 or no FMA";
  Numbers x = arguments(kArguments), pairs(kArguments), doubles(kArguments);
  engine_exp_pairs(x.pairs(), pairs.pairs(), kArguments);
  engine_exp_doubles(x.pairs(), doubles.pairs(), kArguments);
  int64_t differing = 0;
  for (uint32_t i = 0; i < kArguments; ++i) {
    const bool flushed = x.h[i] < certified::kExpLowest;
    const Pair<double> expected = flushed ? Pair<double>{0, 0} : exp_pair({x.h[i], x.l[i]});
    const double in_double = flushed ? 0 : exp_double({x.h[i], x.l[i]});
    differing += !same_bits(pairs.h[i], expected.h) || !same_bits(pairs.l[i], expected.l) || !same_bits(doubles.h[i], in_double);
  }
  EXPECT_EQ(differing, 0);
}

/// |h + l − true value|, at most.
double error_of(double h, double l, arb_srcptr truth) {
  Ball rest, part(h);
  arb_sub(rest, truth, part, kBits);
  arb_sub(rest, rest, Ball(l), kBits);
  return upper(rest);
}

void set_pair(arb_ptr x, double h, double l) {
  arb_set_d(x, h);
  arb_add(x, x, Ball(l), 4000);  // exactly
}

TEST(ExpEngine, errors_stay_within_the_claims) {
  if (!cpu_has_lanes()) GTEST_SKIP() << "this CPU has no AVX2 or no FMA";
  constexpr uint32_t kMeasured = 1 << 14;
  Numbers x = arguments(kMeasured), pairs(kMeasured), doubles(kMeasured);
  engine_exp_pairs(x.pairs(), pairs.pairs(), kMeasured);
  engine_exp_doubles(x.pairs(), doubles.pairs(), kMeasured);
  double worst_pair = 0, worst_double = 0;
  for (uint32_t i = 0; i < kMeasured; ++i) {
    Ball truth;
    set_pair(truth, x.h[i], x.l[i]);
    arb_exp(truth, truth, kBits);
    if (x.h[i] < certified::kExpLowest) {
      EXPECT_LT(upper(truth), certified::kExpFlush * (1 + 0x1p-14));
      continue;
    }
    worst_pair = std::max(worst_pair, error_of(pairs.h[i], pairs.l[i], truth) / lower(truth));
    worst_double = std::max(worst_double, error_of(doubles.h[i], 0, truth) / lower(truth));
  }
  EXPECT_LE(worst_pair, certified::kExpDoubleDoubleError);
  EXPECT_LE(worst_double, certified::kExpDoubleError);
  EXPECT_GE(worst_pair, certified::kExpDoubleDoubleError / 64);  // the arguments are hard enough
  EXPECT_GE(worst_double, certified::kExpDoubleError / 4);
}

/// Pairs from 1/2 to 2^60.
Numbers logarithms(uint32_t n) {
  Numbers x(n);
  for (uint32_t i = 0; i < n; ++i) {
    x.h[i] = i % 4 == 0 ? 1 + (uniform(i, 1) - 0.5) * std::ldexp(1.0, -static_cast<int>(i / 4 % 50))
                        : std::ldexp(0.5 + 0.5 * uniform(i, 1), static_cast<int>(60 * uniform(i, 3)));
    x.l[i] = (uniform(i, 2) - 0.5) * std::ldexp(1.0, std::ilogb(x.h[i]) - 53);
  }
  return x;
}

TEST(ExpEngine, logarithms_stay_within_their_claim) {
  if (!cpu_has_lanes()) GTEST_SKIP() << "this CPU has no AVX2 or no FMA";
  constexpr uint32_t kMeasured = 1 << 14;
  Numbers x = logarithms(kMeasured), y(kMeasured);
  engine_log_pairs(x.pairs(), y.pairs(), kMeasured);
  double worst = 0;
  for (uint32_t i = 0; i < kMeasured; ++i) {
    Ball truth;
    set_pair(truth, x.h[i], x.l[i]);
    arb_log(truth, truth, kBits);
    worst = std::max(worst, error_of(y.h[i], y.l[i], truth) / (1 + lower(truth)));
  }
  EXPECT_LE(worst, engine_claims().log);
  EXPECT_GE(worst, engine_claims().log / 256);
}

constexpr double kUnit = 0x1p-53, kMostLog = 43;
constexpr double kSlack = 1 + 0x1p-30;  // covers the rounding of what follows, sums of positive numbers
double half_spacing(double size) { return std::ldexp(1.0, std::ilogb(size) - 53); }

/// |log h − y| after a Newton step y + (h e^−y − 1), when it was at most `before`: the step is off by what follows its linear
/// term, and by roundings.
double after_newton(double before) {
  const double exp_error = std::exp(before) * certified::kExpDoubleError, step = std::expm1(before) + exp_error;
  return kSlack * (std::expm1(before) - before + exp_error + half_spacing(step) + half_spacing(kMostLog));
}

// y starts as (exponent + fraction − 1) ln 2, where log2(1 + f) − f ≤ 0.0861; then log x = y + log(1 + w), w = x e^−y − 1.
TEST(ExpEngine, logarithms_keep_their_claim_for_every_argument_given_those_of_exp_and_of_pairs) {
  const EngineClaims claims = engine_claims();
  const double largest_f = 1 / std::log(2.0) - 1;
  EXPECT_LT(std::log2(1 + largest_f) - largest_f, 0.0861);
  double distance = 0.0861 * std::log(2.0) + 2 * half_spacing(kMostLog) + half_spacing(61) + 61 * 0x1p-54;
  for (int step = 0; step < 3; ++step) distance = after_newton(distance);
  const double w = kSlack * std::expm1(distance + kUnit * (1 + kUnit));  // x.l is left out of y
  const double w_error = kSlack * ((1 + w) * (certified::kExpDoubleDoubleError + 2 * claims.multiply) + claims.add * w);
  const double all = w + w_error, truncated = std::pow(all, 4), series = 4 * kUnit * all * all;
  EXPECT_LT(w, 0x1p-38);
  EXPECT_LE(kSlack * (w_error * (1 + 2 * all) + truncated + series + 2 * claims.add * all), claims.log);
  EXPECT_LE(kSlack * claims.add, claims.log);  // of the last sum, relative to |log x|
}

}  // namespace
}  // namespace attest::exp_proof
