#include "kernels/torch_operators.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "harness/variant.h"
#include "kernels/ours.h"
#include "kernels/torch_testing.h"

namespace attest {
namespace {

using ::testing::HasSubstr;
using MaybeTensor = std::optional<at::Tensor>;

/// {out, lse or rem}.
std::vector<at::Tensor> call(const Inputs& in, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  using Signature = std::tuple<at::Tensor, at::Tensor>(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                                       const MaybeTensor&, bool, std::optional<double>);
  const bool soft = in.problem.op == Op::kSoftmax;
  const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(soft ? kSoftmaxOperator : kStickBreakingOperator, "");
  const MaybeTensor mask = in.key_padding_mask.defined() ? MaybeTensor(in.key_padding_mask) : std::nullopt;
  const auto [out, second] = handle.typed<Signature>().call(q, k, v, mask, soft ? in.problem.causal : in.problem.attend_current,
                                                            in.problem.softmax_scale);
  return {out, second};
}

std::vector<at::Tensor> call(const Inputs& in) { return call(in, in.q, in.k, in.v); }

AttentionProblem problem(Op op, Dtype dtype) {
  return {.op = op,
          .dtype = dtype,
          .batch = 2,
          .num_heads_q = 4,
          .num_heads_kv = 2,
          .seqlen_q = 3,
          .seqlen_kv = 7,
          .head_dim = 8,
          .head_dim_v = 5,
          .causal = true,
          .attend_current = op == Op::kStickBreaking,
          .softmax_scale = 0.4F};
}

const KernelVariant& twin(Op op) {
  const auto* variant = Registry<KernelVariant>::instance().find(std::string(name_of(op)) + ".cpu.fixed_order");
  if (variant == nullptr) throw std::runtime_error("no host twin");
  return *variant;
}

constexpr Op kOps[] = {Op::kSoftmax, Op::kStickBreaking};

TEST(TorchOperators, agree_bit_for_bit_with_the_twin_through_autograd) {
  at::manual_seed(3);
  for (const Op op : kOps)
    for (const Dtype dtype : {Dtype::kFloat16, Dtype::kBFloat16, Dtype::kFloat32})
      for (const bool dlse : {false, true}) {
        const Inputs in = random_inputs(problem(op, dtype), 2, dlse);
        const Outputs expected = twin(op).run(in);
        const Outputs actual =
            run_with_autograd(in, [&](const auto& q, const auto& k, const auto& v) { return call(in, q, k, v); });
        for (const Quantity q : EnumSet<Quantity>::all().members()) EXPECT_TRUE(at::equal(actual[q], expected[q])) << name_of(q);
      }
}

TEST(TorchOperators, lse_and_rem_alone_can_be_differentiated) {
  at::manual_seed(4);
  for (const Op op : kOps) {
    Inputs in = random_inputs(problem(op, Dtype::kFloat32), 0, true);
    const at::Tensor q = in.q.detach().requires_grad_(true);
    const auto results = call(in, q, in.k, in.v);
    const auto dq = torch::autograd::grad({results[1]}, {q}, {in.dlse});
    in.dout.zero_();
    EXPECT_TRUE(at::equal(dq[0], twin(op).run(in).dq));
  }
}

TEST(TorchOperators, a_saved_tensor_modified_before_the_backward_raises) {
  for (const Op op : kOps) {
    const Inputs in = random_inputs(problem(op, Dtype::kFloat32));
    const at::Tensor q = in.q.detach().requires_grad_(true), k = in.k.clone();
    const auto results = call(in, q, k, in.v);
    k.mul_(2);
    EXPECT_THAT(message_of([&] { torch::autograd::grad({results[0]}, {q}, {in.dout}); }),
                HasSubstr("modified by an inplace operation"));
  }
}

TEST(TorchOperators, a_second_order_gradient_raises_a_sentence_and_the_first_order_one_does_not) {
  for (const Op op : kOps) {
    const Inputs in = random_inputs(problem(op, Dtype::kFloat32));
    const at::Tensor q = in.q.detach().requires_grad_(true);
    const auto dq =
        torch::autograd::grad({call(in, q, in.k, in.v)[0]}, {q}, {in.dout}, /*retain_graph=*/true, /*create_graph=*/true);
    EXPECT_TRUE(at::equal(dq[0].detach(), twin(op).run(in).dq));
    EXPECT_THAT(message_of([&] { torch::autograd::grad({dq[0].sum()}, {q}); }), HasSubstr("has no second-order gradient"));
  }
}

TEST(TorchOperators, meta_tensors_give_the_shapes_and_dtypes_of_a_run) {
  for (const Op op : kOps) {
    Inputs in = random_inputs(problem(op, Dtype::kBFloat16));
    const auto meta = [](const at::Tensor& t) { return t.to(at::Device(at::kMeta)).requires_grad_(true); };
    const at::Tensor q = meta(in.q), k = meta(in.k), v = meta(in.v);
    const auto results = call(in, q, k, v), real = call(in);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(results[i].sizes(), real[i].sizes());
      EXPECT_EQ(results[i].scalar_type(), real[i].scalar_type());
      EXPECT_TRUE(results[i].is_meta());
    }
    const auto gradients = torch::autograd::grad({results[0]}, {q, k, v}, {in.dout.to(at::Device(at::kMeta))});
    EXPECT_EQ(gradients[1].sizes(), in.k.sizes());
  }
}

std::vector<at::Tensor> call_saving(const Inputs& in, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  using Signature = std::tuple<at::Tensor, at::Tensor, at::Tensor>(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                                                   const MaybeTensor&, bool, std::optional<double>);
  const bool soft = in.problem.op == Op::kSoftmax;
  const std::string name = std::string(soft ? kSoftmaxOperator : kStickBreakingOperator) + "_forward";
  const auto [out, second, saved] =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow(name.c_str(), "")
          .typed<Signature>()
          .call(q, k, v, std::nullopt, soft ? in.problem.causal : in.problem.attend_current, in.problem.softmax_scale);
  return {out, second, saved};
}

TEST(TorchOperators, what_a_forward_saves_has_the_size_that_meta_tensors_tell) {
  for (const Op op : kOps) {
    const Inputs in = random_inputs(problem(op, Dtype::kBFloat16));
    const auto meta = [](const at::Tensor& t) { return t.to(at::Device(at::kMeta)); };
    const auto real = call_saving(in, in.q, in.k, in.v), told = call_saving(in, meta(in.q), meta(in.k), meta(in.v));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(real[i].sizes(), told[i].sizes());
  }
}

TEST(TorchOperators, sticks_are_saved_at_every_64th_key_up_to_512_mebibytes) {
  const auto bytes = [](int64_t heads, int64_t seqlen) {
    return saved_bytes_of_ours(Op::kStickBreaking, heads, seqlen, seqlen).expect_int();
  };
  EXPECT_EQ(bytes(1, 128), 128 * 2 * 4 + 256);  // 2 tiles of each query; 2 blocks in 256 bytes
  EXPECT_EQ(bytes(1, 129), 256 * 4 * 4 + 256);  // as 256
  EXPECT_EQ(bytes(16, 8192), (64 << 20) + 16 * 128 * 4);
  EXPECT_EQ(bytes(8, 32768), (512 << 20) + 8 * 512 * 4);
  EXPECT_EQ(bytes(9, 32768), 0);
  EXPECT_EQ(saved_bytes_of_ours(Op::kSoftmax, 6, 5, 7).expect_int(), 6 * 5 * 4);
}

TEST(TorchOperators, a_second_backward_of_a_retained_graph_gives_the_same_bits) {
  for (const Op op : kOps) {
    const Inputs in = random_inputs(problem(op, Dtype::kBFloat16));
    const at::Tensor q = in.q.detach().requires_grad_(true);
    const auto results = call(in, q, in.k, in.v);
    const auto gradient = [&] { return torch::autograd::grad({results[0]}, {q}, {in.dout}, /*retain_graph=*/true)[0]; };
    EXPECT_TRUE(at::equal(gradient(), gradient()));
  }
}

TEST(TorchOperators, a_backward_of_what_no_forward_gave_raises_a_sentence) {
  using Signature = std::tuple<at::Tensor, at::Tensor, at::Tensor>(
      const MaybeTensor&, const MaybeTensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
      const at::Tensor&, const at::Tensor&, const MaybeTensor&, bool, std::optional<double>);
  for (const Op op : kOps) {
    const Inputs in = random_inputs(problem(op, Dtype::kBFloat16));
    const auto of = call_saving(in, in.q, in.k, in.v);
    const std::string name = std::string(op == Op::kSoftmax ? kSoftmaxOperator : kStickBreakingOperator) + "_backward";
    const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), "").typed<Signature>();
    const auto says = [&](const at::Tensor& out, const at::Tensor& lse, const at::Tensor& saved) {
      return message_of([&] { handle.call(in.dout, std::nullopt, out, lse, saved, in.q, in.k, in.v, std::nullopt, false, 1.0); });
    };
    EXPECT_EQ(says(of[0], of[1], of[2]), "");
    for (const std::string& said :
         {says(of[0].slice(2, 1), of[1], of[2]), says(of[0], of[0], of[2]), says(of[0], of[1], of[2].slice(0, 1))})
      EXPECT_THAT(said, HasSubstr("must be those that"));
  }
}

TEST(TorchOperators, wrong_arguments_raise_a_sentence_naming_them) {
  for (const Op op : kOps) {
    const Inputs good = random_inputs(problem(op, Dtype::kFloat32));
    const auto says = [&](const std::function<void(Inputs&)>& spoil) {
      Inputs in = good;
      spoil(in);
      return message_of([&] { call(in); });
    };
    EXPECT_THAT(says([](Inputs& in) { in.k = in.k.select(0, 0); }), HasSubstr("must be [batch, heads, length, head_dim]"));
    EXPECT_THAT(says([](Inputs& in) { in.q = in.q.to(at::kDouble); }), HasSubstr("use float16, bfloat16 or float32"));
    EXPECT_THAT(says([](Inputs& in) { in.v = in.v.to(at::kHalf); }), HasSubstr("must have one dtype"));
    EXPECT_THAT(says([](Inputs& in) { in.v = in.v.slice(2, 1); }), HasSubstr("must have the same length, got 7 and 6"));
    EXPECT_THAT(says([](Inputs& in) { in.q = in.q.slice(1, 0, 3); }),
                HasSubstr("the heads of q (3) must be a multiple of those of k (2)"));
    EXPECT_THAT(says([](Inputs& in) { in.q = in.q.slice(3, 1); }), HasSubstr("must have the same head_dim"));
    EXPECT_THAT(says([](Inputs& in) {
                  in.key_padding_mask = at::ones({2, 6}, at::kBool);
                }),
                HasSubstr("must be [batch, length of k], got [2, 6]"));
    EXPECT_THAT(says([](Inputs& in) { in.key_padding_mask = at::ones({2, 7}); }), HasSubstr("key_padding_mask must be bool"));
    EXPECT_THAT(says([](Inputs& in) { in.problem.softmax_scale = INFINITY; }), HasSubstr("scale must be finite"));
  }
}

}  // namespace
}  // namespace attest
