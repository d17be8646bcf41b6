#include "kernels/torch_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <fstream>

#include "harness/error.h"
#include "kernels/torch_operators.h"
#include "kernels/torch_testing.h"

namespace attest {
namespace {

using ::testing::HasSubstr;

/// Somebody's operator: softmax attention from plain Torch functions, bottom-right causal, equal head counts, no scale.
std::tuple<at::Tensor, at::Tensor> plain_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                                   bool causal) {
  at::Tensor z = at::matmul(query, key.transpose(2, 3)) * static_cast<double>(default_softmax_scale(query.size(3)));
  if (causal) {
    const at::Tensor visible = at::ones({query.size(2), key.size(2)}, at::kBool).tril(key.size(2) - query.size(2));
    z = z.masked_fill(visible.logical_not(), -std::numeric_limits<double>::infinity());
  }
  return {at::matmul(z.softmax(-1), value), z.logsumexp(-1)};
}

at::Tensor needs_a_block_size(const at::Tensor& q, const at::Tensor&, const at::Tensor&, int64_t) { return q; }
at::Tensor no_values(const at::Tensor& q, const at::Tensor&) { return q; }

TORCH_LIBRARY_FRAGMENT(attest_test, m) {
  m.def("plain(Tensor query, Tensor key, Tensor value, bool causal=False) -> (Tensor out, Tensor lse)", plain_attention);
  m.def("needs_a_block_size(Tensor q, Tensor k, Tensor v, int block_size) -> Tensor", needs_a_block_size);
  m.def("no_values(Tensor q, Tensor k) -> Tensor", no_values);
}

AttentionProblem problem(bool causal) {
  return {.op = Op::kSoftmax,
          .dtype = Dtype::kFloat32,
          .batch = 2,
          .num_heads_q = 2,
          .num_heads_kv = 2,
          .seqlen_q = 3,
          .seqlen_kv = 6,
          .head_dim = 16,
          .head_dim_v = 16,
          .causal = causal,
          .softmax_scale = default_softmax_scale(16)};
}

void expect_close(const Outputs& actual, const Outputs& expected, EnumSet<Quantity> quantities) {
  for (const Quantity q : quantities.members())
    EXPECT_LT((actual[q].to(at::kDouble) - expected[q]).abs().max().item<double>(), 2e-5) << name_of(q);
}

std::string usage_error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(TorchCall, an_operator_registered_elsewhere_runs_as_a_variant_with_gradients) {
  at::manual_seed(5);
  const KernelVariant variant = torch_operator_variant("attest_test::plain", Device::kCpu);
  EXPECT_EQ(variant.name, "torch:attest_test::plain");
  EXPECT_EQ(variant.op, Op::kSoftmax);
  for (const bool causal : {false, true}) {
    const Inputs in = random_inputs(problem(causal), 0, true);
    EXPECT_EQ(variant.refuses(in), std::nullopt);
    expect_close(variant.run(in), softmax_in_double(in), variant.produces);
  }
}

TEST(TorchCall, what_an_operator_has_no_argument_for_lies_outside_its_domain) {
  const KernelVariant variant = torch_operator_variant("attest_test::plain", Device::kCpu);
  EXPECT_EQ(variant.domain.padding, (EnumSet<KeyPadding>{KeyPadding::kNone}));
  AttentionProblem p = problem(false);
  p.softmax_scale = 2.0F;
  EXPECT_THAT(variant.refuses(random_inputs(p)).value_or(""), HasSubstr("takes no scale"));
}

TEST(TorchCall, libtorchs_own_operators_get_a_bottom_right_bias) {
  at::manual_seed(6);
  const KernelVariant math = torch_operator_variant("aten::_scaled_dot_product_attention_math", Device::kCpu);
  EXPECT_FALSE(math.produces.contains(Quantity::kLse));
  EXPECT_FALSE(math.domain.dlse.contains(true));
  const Inputs in = random_inputs(problem(true), 2);
  expect_close(math.run(in), softmax_in_double(in), math.produces);
}

TEST(TorchCall, our_operators_run_as_variants_and_are_told_apart) {
  at::manual_seed(7);
  for (const char* name : {kSoftmaxOperator, kStickBreakingOperator}) {
    const KernelVariant variant = torch_operator_variant(name, Device::kCpu);
    AttentionProblem p = problem(true);
    p.op = variant.op;
    const Inputs in = random_inputs(p, 2, true);
    const auto* twin = Registry<KernelVariant>::instance().find(std::string(name_of(variant.op)) + ".cpu.fixed_order");
    ASSERT_NE(twin, nullptr);
    const Outputs actual = variant.run(in), expected = twin->run(in);
    for (const Quantity q : EnumSet<Quantity>::all().members()) EXPECT_TRUE(at::equal(actual[q], expected[q])) << name;
  }
  EXPECT_EQ(torch_operator_variant(kSoftmaxOperator, Device::kCpu).op, Op::kSoftmax);
  EXPECT_EQ(torch_operator_variant(kStickBreakingOperator, Device::kCpu).op, Op::kStickBreaking);
}

TEST(TorchCall, an_operator_that_can_not_be_called_is_a_usage_error_that_says_why) {
  const auto says = [](const std::string& name) { return usage_error_of([&] { torch_operator_variant(name, Device::kCpu); }); };
  EXPECT_THAT(says("attest_test::absent"), HasSubstr("Torch knows no operator attest_test::absent"));
  EXPECT_THAT(says("aten::add"), HasSubstr("no operator aten::add but overloads of it: aten::add.Scalar, "));
  EXPECT_THAT(says("plain"), HasSubstr("write namespace::operator"));
  EXPECT_THAT(says("attest_test::needs_a_block_size"), HasSubstr("argument 'block_size'"));
  EXPECT_THAT(says("attest_test::no_values"), HasSubstr("has no argument called v"));
}

TEST(TorchCall, a_library_that_can_not_be_loaded_is_a_usage_error_with_the_loaders_text) {
  EXPECT_THAT(usage_error_of([] { load_operators("/nonexistent/ops.so"); }), HasSubstr("there is no such file"));
  const std::string path = ::testing::TempDir() + "/not_a_library.so";
  std::ofstream(path) << "text";
  EXPECT_THAT(usage_error_of([&] { load_operators(path); }), HasSubstr("not_a_library.so"));
}

}  // namespace
}  // namespace attest
