#include <gtest/gtest.h>

#include <cmath>

#include "harness/error.h"
#include "oracles/test_inputs.h"

namespace attest {
namespace {

Inputs softmax(const std::vector<float>& z, const std::vector<float>& v, float dout = 1, float dlse = 0) {
  return one_query(Op::kSoftmax, z, v, dout, dlse);
}

TEST(SoftmaxOracle, n_equal_logits_give_the_mean_and_lse_is_the_logit_plus_ln_n) {
  const Reference r = reference_of(softmax({3, 3, 3, 3, 3}, {1, 2, 4, 8, 16}));
  expect_close(value_at(r, Quantity::kOut), 31.0 / 5);
  expect_close(value_at(r, Quantity::kLse), 3 + std::log(5.0));
}

TEST(SoftmaxOracle, one_key_gives_its_value_and_no_gradient_to_its_logit) {
  const Reference r = reference_of(softmax({7}, {0.1F}, 3));
  EXPECT_EQ(value_at(r, Quantity::kOut), 0.1F);
  EXPECT_EQ(value_at(r, Quantity::kLse), 7);
  EXPECT_EQ(value_at(r, Quantity::kDq), 0);
  EXPECT_EQ(value_at(r, Quantity::kDk), 0);
  EXPECT_EQ(value_at(r, Quantity::kDv), 3);
}

TEST(SoftmaxOracle, a_one_hot_value_reads_the_probability) {
  const Reference r = reference_of(softmax({1, 2, 0}, {0, 1, 0}));
  expect_close(value_at(r, Quantity::kOut), 1 / (1 + std::exp(-1.0) + std::exp(-2.0)));
}

TEST(SoftmaxOracle, two_keys_have_opposite_gradients_p_times_one_minus_p) {
  const Reference r = reference_of(softmax({1, 0.5F}, {2, -3}, 0.75F));
  const double p = 1 / (1 + std::exp(-0.5)), dz = p * (1 - p) * 0.75 * 5;
  expect_close(value_at(r, Quantity::kDk, 0), dz);
  expect_close(value_at(r, Quantity::kDk, 1), -dz);
  expect_close(value_at(r, Quantity::kDq), dz * 0.5);
  expect_close(value_at(r, Quantity::kDv, 0), 0.75 * p);
}

TEST(SoftmaxOracle, a_saturated_pair_keeps_its_gradient) {
  for (const float z : {60.0F, -60.0F}) {
    const Reference r = reference_of(softmax({z, -z}, {2, -3}, 0.75F));
    const double dz = std::exp(-120.0) * 0.75 * 5;
    expect_close(value_at(r, Quantity::kDk, 0), dz);
    expect_close(value_at(r, Quantity::kDk, 1), -dz);
    expect_close(value_at(r, Quantity::kLse), 60);
  }
}

TEST(SoftmaxOracle, lse_has_the_probabilities_as_gradient) {
  const Reference r = reference_of(softmax({1, 0.5F}, {2, -3}, 0, 0.5F));
  const double p = 1 / (1 + std::exp(-0.5));
  expect_close(value_at(r, Quantity::kDk, 0), 0.5 * p);
  expect_close(value_at(r, Quantity::kDk, 1), 0.5 * (1 - p));
}

TEST(SoftmaxOracle, the_scale_is_the_fp32_number_that_is_given) {
  Inputs in = softmax({3, 1}, {1, 0});
  in.problem.softmax_scale = 0.1F;
  const Reference r = reference_of(in);
  const double p = 1 / (1 + std::exp(-2.0 * static_cast<double>(0.1F)));
  expect_close(value_at(r, Quantity::kOut), p);
  expect_close(value_at(r, Quantity::kDk, 0), 0.1F * p * (1 - p));
}

TEST(SoftmaxOracle, causality_is_bottom_right) {
  Inputs in = normal_inputs({.seqlen_q = 2, .seqlen_kv = 4, .head_dim = 2, .head_dim_v = 1, .causal = true}, 1);
  in.q.zero_();
  const Reference r = reference_of(in);
  expect_close(value_at(r, Quantity::kLse, 0), std::log(3.0));
  expect_close(value_at(r, Quantity::kLse, 1), std::log(4.0));
}

TEST(SoftmaxOracle, a_row_without_visible_key_is_zero_and_its_lse_minus_infinity) {
  Inputs in = normal_inputs({.seqlen_q = 4, .seqlen_kv = 2, .head_dim = 3, .head_dim_v = 2, .causal = true}, 2);
  const Reference r = reference_of(in);
  for (int64_t i = 0; i < 2; ++i) {
    EXPECT_EQ(value_at(r, Quantity::kLse, i), -INFINITY);
    for (int64_t d = 0; d < 2; ++d) EXPECT_EQ(value_at(r, Quantity::kOut, 2 * i + d), 0);
    for (int64_t d = 0; d < 3; ++d) EXPECT_EQ(value_at(r, Quantity::kDq, 3 * i + d), 0);
  }
  EXPECT_TRUE(std::isfinite(value_at(r, Quantity::kLse, 2)));
}

TEST(SoftmaxOracle, the_content_of_a_hidden_key_is_never_read) {
  Inputs in = normal_inputs({.seqlen_q = 3, .seqlen_kv = 9, .head_dim = 4, .head_dim_v = 4}, 3);
  hide_some_keys(in);
  in.key_padding_mask[0][4] = false;
  const Reference with_nan = reference_of(in);
  const at::Tensor hidden = in.key_padding_mask.logical_not().view({1, 1, 9, 1});
  in.k.masked_fill_(hidden, 5);
  in.v.masked_fill_(hidden, 5);
  const Reference with_five = reference_of(in);
  for (size_t n = 0; n < enum_size<Quantity>(); ++n)
    EXPECT_TRUE(with_nan.quantities[n].value.equal(with_five.quantities[n].value)) << n;
  EXPECT_TRUE(with_nan[Quantity::kDk].value.masked_select(hidden).eq(0).all().item<bool>());
}

TEST(SoftmaxOracle, a_visible_nan_is_refused) {
  EXPECT_THROW(reference_of(softmax({1, NAN}, {1, 2})), UsageError);
  EXPECT_THROW(reference_of(softmax({1, 2}, {1, INFINITY})), UsageError);
}

TEST(SoftmaxOracle, forward_only_inputs_have_no_gradients) {
  const Reference r = reference_of(softmax({1, 2}, {1, 2}).forward_only());
  EXPECT_TRUE(r[Quantity::kLse].value.defined());
  EXPECT_FALSE(r[Quantity::kDq].value.defined());
}

TEST(SoftmaxOracle, a_representable_value_has_a_radius_far_below_the_spacing_of_double) {
  const Reference r = reference_of(softmax({7, 7}, {1, 3}));
  EXPECT_EQ(value_at(r, Quantity::kOut), 2);
  EXPECT_LT(radius_at(r, Quantity::kOut), 1e-50);
}

}  // namespace
}  // namespace attest
