#include "kernels/softmax/torch_sdpa.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include "kernels/torch_testing.h"

namespace attest {
namespace {

const KernelVariant& registered(const std::string& name) {
  const KernelVariant* variant = Registry<KernelVariant>::instance().find(name);
  if (variant == nullptr) throw std::runtime_error("no variant " + name);
  return *variant;
}

AttentionProblem problem(int64_t seqlen_q, int64_t seqlen_kv, bool causal) {
  return {.op = Op::kSoftmax,
          .dtype = Dtype::kFloat32,
          .batch = 2,
          .num_heads_q = 4,
          .num_heads_kv = 2,
          .seqlen_q = seqlen_q,
          .seqlen_kv = seqlen_kv,
          .head_dim = 24,
          .head_dim_v = 24,
          .causal = causal,
          .softmax_scale = 0.3F};
}

void expect_close(const at::Tensor& actual, const at::Tensor& expected, const std::string& what) {
  ASSERT_EQ(actual.sizes(), expected.sizes()) << what;
  EXPECT_LT((actual.to(at::kDouble) - expected).abs().max().item<double>(), 2e-5) << what;
}

void expect_definition(const KernelVariant& variant, const Inputs& in) {
  const Outputs actual = variant.run(in), expected = softmax_in_double(in);
  const std::string name = variant.name + (in.problem.causal ? " causal" : "");
  expect_close(actual.out, expected.out, name + " out");
  if (variant.produces.contains(Quantity::kLse)) expect_close(actual.lse, expected.lse, name + " lse");
  expect_close(actual.dq, expected.dq, name + " dq");
  expect_close(actual.dk, expected.dk, name + " dk");
  expect_close(actual.dv, expected.dv, name + " dv");
}

TEST(TorchSdpa, cpu_backends_follow_the_definition_under_every_mask) {
  at::manual_seed(1);
  for (const char* name : {"softmax.torch.math@cpu", "softmax.torch.flash@cpu"})
    for (const auto& [sq, skv] : {std::pair{5, 5}, {3, 7}, {1, 40}})
      for (const bool causal : {false, true})
        for (const int64_t padded : {0, 2}) {
          if (causal && sq == skv && padded > 0) continue;
          const Inputs in = random_inputs(problem(sq, skv, causal), padded);
          EXPECT_EQ(registered(name).refuses ? registered(name).refuses(in) : std::nullopt, std::nullopt);
          expect_definition(registered(name), in);
        }
}

TEST(TorchSdpa, a_forward_run_alone_gives_no_gradients) {
  at::manual_seed(2);
  const Inputs in = random_inputs(problem(3, 7, true)).forward_only();
  for (const char* name : {"softmax.torch.math@cpu", "softmax.torch.flash@cpu"}) {
    const Outputs outputs = registered(name).run(in);
    EXPECT_TRUE(outputs.out.defined());
    EXPECT_FALSE(outputs.dq.defined() || outputs.dk.defined() || outputs.dv.defined());
  }
}

TEST(TorchSdpa, the_causal_flag_is_used_only_where_top_left_is_bottom_right) {
  EXPECT_TRUE(sdpa::masking(random_inputs(problem(5, 5, true))).is_causal);
  EXPECT_FALSE(sdpa::masking(random_inputs(problem(3, 5, true))).is_causal);
  EXPECT_FALSE(sdpa::masking(random_inputs(problem(5, 5, true), 1)).is_causal);
  EXPECT_FALSE(sdpa::masking(random_inputs(problem(5, 5, false))).bias.has_value());
  const sdpa::Masking of_one_query = sdpa::masking(random_inputs(problem(1, 5, true)));
  EXPECT_FALSE(of_one_query.is_causal || of_one_query.bias.has_value());
}

TEST(TorchSdpa, a_bias_hides_exactly_what_the_definition_hides) {
  for (const auto& [sq, skv] : {std::pair{3, 5}, {5, 3}, {4, 4}}) {
    const Inputs in = random_inputs(problem(sq, skv, true), 1);
    EXPECT_TRUE(at::equal(sdpa::masking(in).bias->eq(0), visible_keys(in)));
  }
}

TEST(TorchSdpa, the_bias_of_the_efficient_backend_has_aligned_rows_and_the_same_values) {
  const Inputs in = random_inputs(problem(3, 21, true), 2);
  const sdpa::Masking plain = sdpa::masking(in), aligned = sdpa::aligned_for_efficient(plain, in);
  EXPECT_TRUE(at::equal(*aligned.bias, plain.bias->expand_as(*aligned.bias)));
  EXPECT_EQ(aligned.bias->stride(3), 1);
  for (int64_t d = 0; d < 3; ++d) EXPECT_EQ(aligned.bias->stride(d) % 16, 0);
}

TEST(TorchSdpa, what_libtorch_refuses_is_refused_in_its_words) {
  AttentionProblem p = problem(3, 7, false);
  p.head_dim_v = 8;
  const auto reason = registered("softmax.torch.flash@cpu").refuses(random_inputs(p));
  ASSERT_TRUE(reason.has_value());
  EXPECT_NE(reason->find("Flash attention requires q,k,v to have the same last dimension"), std::string::npos) << *reason;
  EXPECT_TRUE(at::globalContext().userEnabledMathSDP() && at::globalContext().userEnabledFlashSDP());
}

TEST(TorchSdpa, every_backend_has_a_record_on_the_devices_where_it_exists) {
  for (const char* name : {"softmax.torch.math@cpu", "softmax.torch.flash@cpu", "softmax.torch.math@cuda",
                           "softmax.torch.flash@cuda", "softmax.torch.efficient@cuda", "softmax.torch.cudnn@cuda"})
    EXPECT_FALSE(registered(name).domain.dlse.contains(true) || registered(name).domain.poison.contains(true)) << name;
}

}  // namespace
}  // namespace attest
