#include <gtest/gtest.h>

#include <cmath>

#include "oracles/test_inputs.h"

namespace attest {
namespace {

double sigmoid(double z) { return 1 / (1 + std::exp(-z)); }

Inputs stick(const std::vector<float>& z, const std::vector<float>& v, float dout = 1, float drem = 0) {
  return one_query(Op::kStickBreaking, z, v, dout, drem);
}

TEST(StickBreakingOracle, one_key_takes_its_share_and_leaves_the_rest) {
  const Reference r = reference_of(stick({0.75F}, {3}, 2, 0.5F));
  const double beta = sigmoid(0.75), rest = sigmoid(-0.75);
  expect_close(value_at(r, Quantity::kOut), 3 * beta);
  expect_close(value_at(r, Quantity::kLse), rest);
  expect_close(value_at(r, Quantity::kDk), beta * rest * (6 - 0.5));
  expect_close(value_at(r, Quantity::kDq), beta * rest * (6 - 0.5) * 0.75);
  expect_close(value_at(r, Quantity::kDv), 2 * beta);
}

// out = β1 v1 + (1 − β1) β0 v0, the nearer key 1 first; rem = (1 − β0)(1 − β1).
TEST(StickBreakingOracle, of_two_keys_the_nearer_comes_first) {
  const Reference r = reference_of(stick({0.5F, -1}, {3, 5}, 1, 0.25F));
  const double b0 = sigmoid(0.5), c0 = sigmoid(-0.5), b1 = sigmoid(-1), c1 = sigmoid(1);
  expect_close(value_at(r, Quantity::kOut), b1 * 5 + c1 * b0 * 3);
  expect_close(value_at(r, Quantity::kLse), c0 * c1);
  expect_close(value_at(r, Quantity::kDk, 0), b0 * c0 * c1 * (3 - 0.25));
  expect_close(value_at(r, Quantity::kDk, 1), b1 * c1 * (5 - 3 * b0 - 0.25 * c0));
  expect_close(value_at(r, Quantity::kDv, 0), c1 * b0);
}

TEST(StickBreakingOracle, a_saturated_key_keeps_its_gradient) {
  for (const float z : {60.0F, -60.0F}) {
    const Reference r = reference_of(stick({z}, {3}, 2, 0.5F));
    expect_close(value_at(r, Quantity::kDk), std::exp(-60.0) * 5.5);
    expect_close(value_at(r, Quantity::kLse), sigmoid(-z));
  }
}

TEST(StickBreakingOracle, a_saturated_pair_keeps_its_gradients) {
  const Reference r = reference_of(stick({60, 60}, {3, 5}));
  expect_close(value_at(r, Quantity::kDk, 1), std::exp(-60.0) * 2);
  expect_close(value_at(r, Quantity::kDk, 0), std::exp(-120.0) * 3);
  expect_close(value_at(r, Quantity::kLse), std::exp(-120.0));
}

TEST(StickBreakingOracle, shares_and_the_rest_make_the_whole_stick) {
  const Reference r = reference_of(stick({0.5F, -1, 2, 0.25F, -3}, {1, 1, 1, 1, 1}));
  EXPECT_NEAR(value_at(r, Quantity::kOut) + value_at(r, Quantity::kLse), 1, 2e-16);
}

TEST(StickBreakingOracle, without_attend_current_a_query_does_not_see_its_own_position) {
  Inputs in = normal_inputs(
      {.op = Op::kStickBreaking, .seqlen_q = 2, .seqlen_kv = 2, .head_dim = 4, .head_dim_v = 2, .causal = true}, 1);
  in.q.zero_();
  const Reference r = reference_of(in);
  EXPECT_EQ(value_at(r, Quantity::kLse, 0), 1);
  EXPECT_EQ(value_at(r, Quantity::kLse, 1), 0.5);
  EXPECT_EQ(value_at(r, Quantity::kOut, 0), 0);
  EXPECT_EQ(value_at(r, Quantity::kOut, 2), in.v[0][0][0][0].item<double>() / 2);
  in.problem.attend_current = true;
  EXPECT_EQ(value_at(reference_of(in), Quantity::kLse, 1), 0.25);
}

TEST(StickBreakingOracle, a_row_without_visible_key_keeps_the_whole_stick) {
  Inputs in = normal_inputs(
      {.op = Op::kStickBreaking, .seqlen_q = 3, .seqlen_kv = 5, .head_dim = 4, .head_dim_v = 2, .causal = true}, 2);
  in.key_padding_mask = at::zeros({1, 5}, at::TensorOptions(at::kBool));
  in.k.fill_(NAN);
  const Reference r = reference_of(in);
  EXPECT_TRUE(r[Quantity::kLse].value.eq(1).all().item<bool>());
  for (const Quantity quantity : {Quantity::kOut, Quantity::kDq, Quantity::kDk, Quantity::kDv})
    EXPECT_TRUE(r[quantity].value.eq(0).all().item<bool>()) << name_of(quantity);
}

}  // namespace
}  // namespace attest
