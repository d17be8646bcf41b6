#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <bit>

#include "harness/error.h"
#include "oracles/certified/test_groups.h"
#include "oracles/certified/work.h"

namespace attest::certified {

const Lanes& eight_lanes();

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<GroupProblem> shapes() {
  const GroupProblem small = {.group = 2, .n_q = 5, .n_kv = 9, .head_dim = 3, .head_dim_v = 2, .significand_bits = 24};
  const GroupProblem wide = {.n_q = 40, .n_kv = 300, .head_dim = 20, .head_dim_v = 33, .significand_bits = 8};
  const GroupProblem tall = {.group = 3, .n_q = 50, .n_kv = 30, .head_dim = 16, .head_dim_v = 8, .significand_bits = 11};
  std::vector<GroupProblem> all;
  for (GroupProblem p : {small, wide, tall})
    for (const Op op : {Op::kSoftmax, Op::kStickBreaking})
      for (const bool causal : {true, false}) {
        p.op = op;
        p.causal = causal || op == Op::kStickBreaking;
        p.attend_current = op == Op::kStickBreaking && !causal;
        all.push_back(p);
      }
  return all;
}

uint64_t bits(double x) { return std::bit_cast<uint64_t>(x); }

void expect_same_bits(const Answer& a, const Answer& b) {
  for (size_t n = 0; n < 5; ++n)
    for (size_t i = 0; i < a.hi[n].size(); ++i) {
      ASSERT_EQ(bits(a.hi[n][i]), bits(b.hi[n][i])) << "quantity " << n << ", element " << i;
      ASSERT_EQ(bits(a.lo[n][i]), bits(b.lo[n][i])) << "quantity " << n << ", element " << i;
      ASSERT_EQ(bits(a.radius[n][i]), bits(b.radius[n][i])) << "quantity " << n << ", element " << i;
      for (size_t s = 0; s < 8 && !a.terms[n].empty(); ++s) {
        const size_t at = s * a.hi[n].size() + i;
        ASSERT_EQ(bits(a.terms[n][at]), bits(b.terms[n][at])) << "quantity " << n << ", source " << s << ", element " << i;
      }
    }
}

Answer evaluate_on(const Lanes& lanes, Tier tier, Group& group, int threads) {
  Answer answer(problem_of(group), true);
  evaluate_with(lanes, tier, group.problem, answer.reference, threads);
  return answer;
}

TEST(Certified, BitsDependNeitherOnTheNumberOfLanesNorOnThreads) {
  uint64_t seed = 1;
  for (const GroupProblem& shape : shapes())
    for (const Tier tier : {Tier::kDouble, Tier::kDoubleDouble})
      for (const double gain : {1.0, 30.0}) {
        Group group = random_group(shape, gain, seed % 2 == 0, seed);
        ++seed;
        const Answer four = evaluate_on(avx2_lanes(), tier, group, 1);
        expect_same_bits(four, evaluate_on(eight_lanes(), tier, group, 1));
        for (const int threads : {2, 3}) expect_same_bits(four, evaluate_on(avx2_lanes(), tier, group, threads));
        if (__builtin_cpu_supports("avx512f")) expect_same_bits(four, evaluate_on(avx512_lanes(), tier, group, 2));
      }
}

TEST(Certified, TierZeroLiesWithinBothRadiiOfTierOne) {
  uint64_t seed = 100;
  for (const GroupProblem& shape : shapes())
    for (const double gain : {0.0, 1.0, 30.0, 1000.0}) {
      ++seed;
      Group group = random_group(shape, gain, seed % 2 == 0, seed);
      const Answer low = evaluate_on(avx2_lanes(), Tier::kDouble, group, 1);
      const Answer high = evaluate_on(avx2_lanes(), Tier::kDoubleDouble, group, 1);
      for (size_t n = 0; n < 5; ++n)
        for (size_t i = 0; i < low.hi[n].size(); ++i) {
          if (low.hi[n][i] == high.hi[n][i]) continue;
          const double distance = std::fabs((low.hi[n][i] - high.hi[n][i]) + (low.lo[n][i] - high.lo[n][i]));
          ASSERT_LE(distance, low.radius[n][i] + high.radius[n][i]);
          ASSERT_LE(high.radius[n][i], low.radius[n][i] + 1e-200);  // what is flushed is the same in both
        }
    }
}

TEST(Certified, WhatTheDefinitionGivesExactlyHasRadiusZero) {
  for (const Op op : {Op::kSoftmax, Op::kStickBreaking}) {
    const GroupProblem shape = {.op = op, .n_q = 6, .n_kv = 4, .head_dim = 3, .head_dim_v = 2, .causal = true};
    Group group = random_group(shape, 1, false, 7);
    const int64_t blind = op == Op::kSoftmax ? 2 : 3;  // queries before the first key
    for (int64_t n = 0; n < blind * 3; ++n) group.q[n] = std::numeric_limits<double>::quiet_NaN();
    const Answer a = evaluate_on(avx2_lanes(), Tier::kDoubleDouble, group, 1);
    for (int64_t i = 0; i < blind; ++i) {
      EXPECT_EQ(a.hi[1][i], op == Op::kSoftmax ? -kInfinity : 1.0);
      for (const auto& [quantity, at] : {std::pair{0, 2 * i}, std::pair{1, i}, std::pair{2, 3 * i}}) {
        EXPECT_EQ(a.radius[quantity][at], 0);
        EXPECT_TRUE(quantity == 1 || a.hi[quantity][at] == 0);
      }
    }
    for (const double x : a.radius[0]) EXPECT_LT(x, 1e-20);
    EXPECT_EQ(a.radius[3].back() == 0, op == Op::kStickBreaking);  // there no query sees the last key
  }
}

TEST(Certified, NoKeyAtAllIsAnAnswer) {
  const GroupProblem shape = {.n_q = 2, .n_kv = 3, .head_dim = 2, .head_dim_v = 2};
  Group group = random_group(shape, 1, false, 3);
  group.keep.assign(3, 0);
  const Answer a = evaluate_on(avx2_lanes(), Tier::kDouble, group, 2);
  EXPECT_EQ(a.hi[1][0], -kInfinity);
  for (const size_t n : {0, 2, 3, 4})
    for (const double x : a.hi[n]) EXPECT_EQ(x, 0);
}

TEST(Certified, LogitsThatDifferInTheirLowPartsAloneAreToldApart) {
  const GroupProblem shape = {.n_q = 1, .n_kv = 2, .head_dim = 2, .head_dim_v = 1};
  Group group = random_group(shape, 1, false, 15);
  group.problem.softmax_scale = 1;
  group.q = {0x1p40, 1};
  group.k = {0x1p20, 3, 0x1p20, 5};  // logits 2^60 + 3 and 2^60 + 5
  group.v = {1, 0};
  const double weight = 1 / (1 + std::exp(2.0));
  for (const Tier tier : {Tier::kDouble, Tier::kDoubleDouble}) {
    const Answer a = evaluate_on(avx2_lanes(), tier, group, 1);
    EXPECT_LT(a.radius[0][0], 1e-12);
    EXPECT_NEAR(a.hi[0][0], weight, a.radius[0][0] + 0x1p-52 * weight);
    EXPECT_LT(a.radius[1][0], 1e-12);
    EXPECT_EQ(a.hi[1][0], 0x1p60);
    EXPECT_NEAR(a.lo[1][0], 5 + std::log1p(std::exp(-2.0)), 1e-12);
  }
}

TEST(Certified, WhereNoBoundHoldsTheRadiusIsInfinite) {
  const GroupProblem shape = {.n_q = 3, .n_kv = 5, .head_dim = 4, .head_dim_v = 2};
  Group group = random_group(shape, 1e16, false, 11);  // logits of 1e32
  const Answer a = evaluate_on(avx2_lanes(), Tier::kDoubleDouble, group, 1);
  EXPECT_EQ(a.radius[0][0], kInfinity);
  EXPECT_EQ(a.radius[4][0], kInfinity);
}

TEST(Certified, AVisibleNanIsRefused) {
  const GroupProblem shape = {.n_q = 3, .n_kv = 5, .head_dim = 4, .head_dim_v = 2};
  Group group = random_group(shape, 1, false, 12);
  group.v[3] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(evaluate_on(avx2_lanes(), Tier::kDouble, group, 1), UsageError);
}

TEST(Certified, MoreBitsThanTheDtypeHasAreRefused) {
  const GroupProblem shape = {.n_q = 3, .n_kv = 5, .head_dim = 4, .head_dim_v = 2, .significand_bits = 8};
  Group group = random_group(shape, 1, false, 13);
  group.k[0] = 1.001;
  EXPECT_THROW(evaluate_on(avx2_lanes(), Tier::kDouble, group, 1), UsageError);
}

TEST(Certified, AThreadThatFlushesSubnormalsIsRefused) {
  const GroupProblem shape = {.n_q = 1, .n_kv = 1};
  Group group = random_group(shape, 1, false, 14);
  const unsigned state = _mm_getcsr();
  for (const unsigned flag : {0x8000U, 0x0040U}) {
    _mm_setcsr(state | flag);
    EXPECT_THROW(evaluate_on(avx2_lanes(), Tier::kDouble, group, 1), Error);
    _mm_setcsr(state);
  }
}

}  // namespace
}  // namespace attest::certified
