// Closed forms of stick-breaking attention that a hand can check.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/device/random_inputs.h"

namespace attest::fixed_order {
namespace {

/// One query at the last position, which it may look at, against keys whose logits are `z`, values `v`, D = Dv = 1.
Inputs sticks_row(const std::vector<float>& z, const std::vector<float>& v) {
  const auto n = static_cast<int64_t>(z.size());
  Inputs in{.problem = {
                .op = Op::kStickBreaking, .dtype = Dtype::kFloat32, .seqlen_kv = n, .causal = true, .attend_current = true}};
  in.q = at::ones({1, 1, 1, 1});
  in.k = at::tensor(z).reshape({1, 1, n, 1});
  in.v = at::tensor(v).reshape({1, 1, n, 1});
  in.dout = at::ones({1, 1, 1, 1});
  return in;
}
Outputs run_sticks(const Inputs& in) { return run_variant("stickbreaking.cpu.fixed_order", in); }

TEST(StickBreakingFixedOrder, of_zero_logits_halves_the_stick_from_the_nearest_key_on) {
  const Outputs o = run_sticks(sticks_row({0.0F, 0.0F, 0.0F}, {1.0F, 10.0F, 100.0F}));
  EXPECT_EQ(o.out.item<float>(), 50.0F + 2.5F + 0.125F);
  EXPECT_EQ(o.lse.item<float>(), 0.125F);
  EXPECT_EQ(o.dv[0][0][0][0].item<float>(), 0.125F);
  EXPECT_EQ(o.dv[0][0][2][0].item<float>(), 0.5F);
}

TEST(StickBreakingFixedOrder, without_attend_current_leaves_the_nearest_key_out) {
  Inputs in = sticks_row({0.0F, 0.0F}, {1.0F, 10.0F});
  in.problem.attend_current = false;
  const Outputs o = run_sticks(in);
  EXPECT_EQ(o.out.item<float>(), 0.5F);
  EXPECT_EQ(o.lse.item<float>(), 0.5F);
  EXPECT_EQ(o.dk[0][0][1][0].item<float>(), 0.0F);
}

TEST(StickBreakingFixedOrder, gradients_survive_saturation) {
  // One key, z = 40: out = β·v, dz = β(1 − β)·v with 1 − β = e^−40/(1 + e^−40), lost where it is taken as 1 − β.
  const Outputs o = run_sticks(sticks_row({40.0F}, {3.0F}));
  EXPECT_NEAR(o.dk.item<float>() / (3.0 * std::exp(-40.0)), 1.0, 1e-5);
}

TEST(StickBreakingFixedOrder, what_remains_has_a_gradient_of_its_own) {
  // d rem / dz = −β·rem for a single key.
  Inputs in = sticks_row({2.0F}, {0.0F});
  in.dlse = at::full({1, 1, 1}, 5.0F);
  const Outputs o = run_sticks(in);
  const double beta = 1.0 / (1.0 + std::exp(-2.0));
  EXPECT_NEAR(o.dk.item<float>(), -5.0 * beta * (1.0 - beta), 1e-6);
}

TEST(StickBreakingFixedOrder, without_a_visible_key_leaves_the_whole_stick) {
  Inputs in = sticks_row({1.0F, 2.0F}, {std::nanf(""), 1.0F});
  in.key_padding_mask = at::zeros({1, 2}, at::kBool);
  in.dlse = at::full({1, 1, 1}, 5.0F);
  const Outputs o = run_sticks(in);
  EXPECT_EQ(o.lse.item<float>(), 1.0F);
  for (const auto* t : {&o.out, &o.dq, &o.dk, &o.dv}) EXPECT_EQ(t->abs().max().item<float>(), 0.0F);
}

}  // namespace
}  // namespace attest::fixed_order
