// Closed forms of softmax attention that a hand can check.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/device/random_inputs.h"

namespace attest::fixed_order {
namespace {

/// One query against keys whose logits are `z`, values `v`, D = Dv = 1.
Inputs softmax_row(const std::vector<float>& z, const std::vector<float>& v) {
  const auto n = static_cast<int64_t>(z.size());
  Inputs in{.problem = {.op = Op::kSoftmax, .dtype = Dtype::kFloat32, .seqlen_kv = n}};
  in.q = at::ones({1, 1, 1, 1});
  in.k = at::tensor(z).reshape({1, 1, n, 1});
  in.v = at::tensor(v).reshape({1, 1, n, 1});
  in.dout = at::ones({1, 1, 1, 1});
  return in;
}
Outputs run_softmax(const Inputs& in) { return run_variant("softmax.cpu.fixed_order", in); }

TEST(SoftmaxFixedOrder, of_n_equal_logits_is_the_mean_and_lse_grows_by_log_n) {
  for (const int n : {1, 2, 4, 256, 512, 1024}) {
    std::vector<float> v(static_cast<size_t>(n), 1.0F);
    const Outputs o = run_softmax(softmax_row(std::vector<float>(v.size(), 3.0F), v));
    EXPECT_EQ(o.out.item<float>(), 1.0F);
    EXPECT_FLOAT_EQ(o.lse.item<float>(), 3.0F + std::log(static_cast<float>(n)));
    EXPECT_EQ(o.dq.item<float>(), 0.0F);
  }
}

TEST(SoftmaxFixedOrder, of_one_key_is_its_value) {
  const Outputs o = run_softmax(softmax_row({-1000.0F}, {7.0F}));
  EXPECT_EQ(o.out.item<float>(), 7.0F);
  EXPECT_EQ(o.lse.item<float>(), -1000.0F);
  EXPECT_EQ(o.dk.item<float>(), 0.0F);
  EXPECT_EQ(o.dv.item<float>(), 1.0F);
}

TEST(SoftmaxFixedOrder, gradients_survive_saturation) {
  // z = (0, −30): dz = ±P₀·P₁·(v₀ − v₁), where P₁ = e^−30 is far under the spacing of P₀.
  const Outputs o = run_softmax(softmax_row({0.0F, -30.0F}, {1.0F, 1.0009765625F}));
  const double expected = std::exp(-30.0) * 0.0009765625;
  EXPECT_NEAR(o.dk[0][0][1][0].item<float>() / expected, 1.0, 1e-5);
  EXPECT_NEAR(o.dk[0][0][0][0].item<float>() / -expected, 1.0, 1e-5);
}

TEST(SoftmaxFixedOrder, without_a_visible_key_is_zero_and_ignores_dlse) {
  Inputs in = softmax_row({1.0F, 2.0F}, {std::nanf(""), 1.0F});
  in.key_padding_mask = at::zeros({1, 2}, at::kBool);
  in.dlse = at::full({1, 1, 1}, 5.0F);
  const Outputs o = run_softmax(in);
  EXPECT_EQ(o.lse.item<float>(), -std::numeric_limits<float>::infinity());
  for (const auto* t : {&o.out, &o.dq, &o.dk, &o.dv}) EXPECT_EQ(t->abs().max().item<float>(), 0.0F);
}

}  // namespace
}  // namespace attest::fixed_order
