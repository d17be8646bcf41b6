// Registers attest::softmax_attention and attest::stickbreaking_attention with Torch. The work is done by our own variants, found
// by name: OP.cuda.fused where it takes the inputs, else OP.cuda.fixed_order; OP.cpu.fixed_order on a CPU. Which one depends on the
// dtype, the head dims and the GPU, and on batch and lengths only beyond the fused kernels' limits (stick-breaking gradients of some
// 30,000 tokens with 8 query heads a KV head: kernels/hopper/STICKBREAKING.md). Unusual: the backward operator runs the
// variant again with the gradients, forward included, so nothing but the inputs is saved. lse and rem are differentiable. A
// second-order gradient raises, and only when it is asked for.
#include "kernels/torch_operators.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <cmath>
#include <tuple>

#include "harness/tensors.h"
#include "harness/variant.h"

namespace attest {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;
using Pair = std::tuple<Tensor, Tensor>;
using Triple = std::tuple<Tensor, Tensor, Tensor>;
using Forward = Pair(const Tensor&, const Tensor&, const Tensor&, const MaybeTensor&, bool, std::optional<double>);
using Backward = Triple(const MaybeTensor&, const MaybeTensor&, const Tensor&, const Tensor&, const Tensor&, const MaybeTensor&,
                        bool, std::optional<double>);

template <Op kOp>
constexpr const char* kName = kOp == Op::kSoftmax ? kSoftmaxOperator : kStickBreakingOperator;

Tensor or_undefined(const MaybeTensor& t) { return t.value_or(Tensor()); }

/// Sizes are compared as SymInts, so that the same sentences serve Meta and tracing.
void check_sizes(const char* name, const Tensor& q, const Tensor& k, const Tensor& v) {
  const auto qs = q.sym_sizes(), ks = k.sym_sizes(), vs = v.sym_sizes();
  for (const auto& sizes : {qs, ks, vs})
    for (const auto& size : sizes)
      TORCH_CHECK(size >= 1, name, ": every size must be at least 1, got q ", qs, ", k ", ks, ", v ", vs);
  TORCH_CHECK(qs[0] == ks[0] && qs[0] == vs[0], name, ": q, k and v must have one batch size, got ", qs[0], ", ", ks[0], ", ",
              vs[0]);
  TORCH_CHECK(ks[1] == vs[1], name, ": k and v must have the same number of heads, got ", ks[1], " and ", vs[1]);
  TORCH_CHECK(qs[1] % ks[1] == 0, name, ": the heads of q (", qs[1], ") must be a multiple of those of k (", ks[1], ")");
  TORCH_CHECK(ks[2] == vs[2], name, ": k and v must have the same length, got ", ks[2], " and ", vs[2]);
  TORCH_CHECK(qs[3] == ks[3], name, ": q and k must have the same head_dim, got ", qs[3], " and ", ks[3]);
}

void check_arguments(const char* name, const Tensor& q, const Tensor& k, const Tensor& v, const MaybeTensor& mask,
                     std::optional<double> scale) {
  TORCH_CHECK(q.dim() == 4 && k.dim() == 4 && v.dim() == 4, name, ": q, k and v must be [batch, heads, length, head_dim], got ",
              q.dim(), ", ", k.dim(), " and ", v.dim(), " dimensions");
  const auto type = q.scalar_type();
  TORCH_CHECK(type == at::kHalf || type == at::kBFloat16 || type == at::kFloat, name, ": dtype ", type,
              " is not supported; use float16, bfloat16 or float32");
  TORCH_CHECK(k.scalar_type() == type && v.scalar_type() == type, name, ": q, k and v must have one dtype, got ", type, ", ",
              k.scalar_type(), " and ", v.scalar_type());
  TORCH_CHECK(k.device() == q.device() && v.device() == q.device(), name, ": q, k and v must be on one device, got ", q.device(),
              ", ", k.device(), " and ", v.device());
  check_sizes(name, q, k, v);
  TORCH_CHECK(!scale || std::isfinite(static_cast<float>(*scale)), name, ": scale must be finite in float32, got ",
              scale.value_or(0));
  if (!mask || !mask->defined()) return;
  TORCH_CHECK(mask->scalar_type() == at::kBool, name, ": key_padding_mask must be bool (true: the key exists), got ",
              mask->scalar_type());
  TORCH_CHECK(mask->device() == q.device(), name, ": key_padding_mask is on ", mask->device(), ", q on ", q.device());
  TORCH_CHECK(mask->dim() == 2 && mask->sym_size(0) == q.sym_size(0) && mask->sym_size(1) == k.sym_size(2), name,
              ": key_padding_mask must be [batch, length of k], got ", mask->sym_sizes());
}

template <Op kOp>
Inputs make_inputs(const Tensor& q, const Tensor& k, const Tensor& v, const MaybeTensor& mask, bool flag,
                   std::optional<double> scale) {
  check_arguments(kName<kOp>, q, k, v, mask, scale);
  const AttentionProblem problem{
      .op = kOp,
      .dtype = dtype_of(q.scalar_type()),
      .batch = q.size(0),
      .num_heads_q = q.size(1),
      .num_heads_kv = k.size(1),
      .seqlen_q = q.size(2),
      .seqlen_kv = k.size(2),
      .head_dim = q.size(3),
      .head_dim_v = v.size(3),
      .causal = kOp == Op::kStickBreaking || flag,
      .attend_current = kOp == Op::kStickBreaking && flag,
      .softmax_scale = scale ? static_cast<float>(*scale) : default_softmax_scale(q.size(3)),
  };
  return {.problem = problem, .q = q, .k = k, .v = v, .key_padding_mask = or_undefined(mask)};
}

/// Why `name` can't run, or nothing.
std::optional<std::string> refusal(const std::string& name, const Inputs& inputs) {
  const KernelVariant* variant = Registry<KernelVariant>::instance().find(name);
  if (variant == nullptr)
    return std::string("this build has no such kernel") + (inputs.q.is_cuda() ? "; build with nvcc to run on CUDA" : "");
  if (auto reason = variant->domain.excludes(inputs)) return reason;
  return variant->refuses ? variant->refuses(inputs) : std::nullopt;
}

/// The first of our variants that takes the inputs, fastest first.
Outputs run_ours(const Inputs& inputs) {
  const std::string prefix = fmt::format("{}.{}.", name_of(inputs.problem.op), inputs.q.is_cuda() ? "cuda" : "cpu");
  if (const std::string fused = prefix + "fused"; inputs.q.is_cuda() && !refusal(fused, inputs))
    return Registry<KernelVariant>::instance().find(fused)->run(inputs);
  const std::string plain = prefix + "fixed_order";
  const auto reason = refusal(plain, inputs);
  TORCH_CHECK(!reason, plain, ": ", reason.value_or(""));
  return Registry<KernelVariant>::instance().find(plain)->run(inputs);
}

template <Op kOp>
Pair forward_kernel(const Tensor& q, const Tensor& k, const Tensor& v, const MaybeTensor& mask, bool flag,
                    std::optional<double> scale) {
  Outputs o = run_ours(make_inputs<kOp>(q, k, v, mask, flag, scale));
  return {o.out, o.lse};
}

template <Op kOp>
Triple backward_kernel(const MaybeTensor& dout, const MaybeTensor& dlse, const Tensor& q, const Tensor& k, const Tensor& v,
                       const MaybeTensor& mask, bool flag, std::optional<double> scale) {
  Inputs inputs = make_inputs<kOp>(q, k, v, mask, flag, scale);
  const AttentionProblem& p = inputs.problem;
  inputs.dout = or_undefined(dout);
  inputs.dlse = or_undefined(dlse);
  if (!inputs.dout.defined()) inputs.dout = at::zeros({p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v}, q.options());
  if (auto reason = inputs.invalid_reason()) TORCH_CHECK(false, kName<kOp>, "_backward: ", *reason);
  Outputs o = run_ours(inputs);
  return {o.dq, o.dk, o.dv};
}

template <Op kOp>
Pair forward_meta(const Tensor& q, const Tensor& k, const Tensor& v, const MaybeTensor& mask, bool, std::optional<double> scale) {
  check_arguments(kName<kOp>, q, k, v, mask, scale);
  const auto sizes = q.sym_sizes();
  return {q.new_empty_symint({sizes[0], sizes[1], sizes[2], v.sym_size(3)}),
          q.new_empty_symint({sizes[0], sizes[1], sizes[2]}, q.options().dtype(at::kFloat))};
}

template <Op kOp>
Triple backward_meta(const MaybeTensor&, const MaybeTensor&, const Tensor& q, const Tensor& k, const Tensor& v,
                     const MaybeTensor& mask, bool, std::optional<double> scale) {
  check_arguments(kName<kOp>, q, k, v, mask, scale);
  return {q.new_empty_symint(q.sym_sizes()), k.new_empty_symint(k.sym_sizes()), v.new_empty_symint(v.sym_sizes())};
}

template <Op kOp>
Pair call_forward(const Tensor& q, const Tensor& k, const Tensor& v, const MaybeTensor& mask, bool flag,
                  std::optional<double> scale) {
  static const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(kName<kOp>, "").template typed<Forward>();
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return handle.call(q, k, v, mask, flag, scale);
}

template <Op kOp>
Triple call_backward(const MaybeTensor& dout, const MaybeTensor& dlse, const Tensor& q, const Tensor& k, const Tensor& v,
                     const MaybeTensor& mask, bool flag, std::optional<double> scale) {
  static const std::string name = std::string(kName<kOp>) + "_backward";
  static const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), "").template typed<Backward>();
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return handle.call(dout, dlse, q, k, v, mask, flag, scale);
}

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The backward as a node of its own: under create_graph it can be built, and raises once it is differentiated itself.
template <Op kOp>
struct FirstOrderOnly : torch::autograd::Function<FirstOrderOnly<kOp>> {
  static variable_list forward(AutogradContext*, const MaybeTensor& dout, const MaybeTensor& dlse, const Tensor& q,
                               const Tensor& k, const Tensor& v, const MaybeTensor& mask, bool flag,
                               std::optional<double> scale) {
    const auto [dq, dk, dv] = call_backward<kOp>(dout, dlse, q, k, v, mask, flag, scale);
    return {dq, dk, dv};
  }
  static variable_list backward(AutogradContext*, const variable_list&) {
    TORCH_CHECK(false, kName<kOp>, " has no second-order gradient: its backward can't be differentiated again");
  }
};

template <Op kOp>
struct Attention : torch::autograd::Function<Attention<kOp>> {
  static variable_list forward(AutogradContext* ctx, const Tensor& q, const Tensor& k, const Tensor& v, const MaybeTensor& mask,
                               bool flag, std::optional<double> scale) {
    ctx->set_materialize_grads(false);
    ctx->save_for_backward({q, k, v, or_undefined(mask)});
    ctx->saved_data["flag"] = flag;
    ctx->saved_data["scale"] = scale;
    const auto [out, lse] = call_forward<kOp>(q, k, v, mask, flag, scale);
    return {out, lse};
  }

  /// In the order of forward's arguments. get_saved_variables raises when one was modified since.
  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    if (!gradients[0].defined() && !gradients[1].defined()) return variable_list(6);
    const auto saved = ctx->get_saved_variables();
    const auto maybe = [](const Tensor& t) { return t.defined() ? MaybeTensor(t) : std::nullopt; };
    auto d = FirstOrderOnly<kOp>::apply(maybe(gradients[0]), maybe(gradients[1]), saved[0], saved[1], saved[2], maybe(saved[3]),
                                        ctx->saved_data["flag"].toBool(), ctx->saved_data["scale"].toOptional<double>());
    return {d[0], d[1], d[2], Tensor(), Tensor(), Tensor()};
  }
};

template <Op kOp>
Pair autograd_kernel(const Tensor& q, const Tensor& k, const Tensor& v, const MaybeTensor& mask, bool flag,
                     std::optional<double> scale) {
  const auto results = Attention<kOp>::apply(q, k, v, mask, flag, scale);
  return {results[0], results[1]};
}

constexpr Op kSoft = Op::kSoftmax;
constexpr Op kStick = Op::kStickBreaking;

TORCH_LIBRARY(attest, m) {
  const auto define = [&](const std::string& name, const std::string& flag, const std::string& second) {
    const std::string tail =
        fmt::format("Tensor q, Tensor k, Tensor v, Tensor? key_padding_mask=None, bool {}=False, float? scale=None)", flag);
    m.def(fmt::format("{}({} -> (Tensor out, Tensor {})", name, tail, second).c_str());
    m.def(fmt::format("{}_backward(Tensor? dout, Tensor? d{}, {} -> (Tensor dq, Tensor dk, Tensor dv)", name, second, tail)
              .c_str());
  };
  define("softmax_attention", "causal", "lse");
  define("stickbreaking_attention", "attend_current", "rem");
}

void implement(torch::Library& m, Forward* soft, Backward* soft_backward, Forward* stick, Backward* stick_backward) {
  m.impl("softmax_attention", soft);
  m.impl("softmax_attention_backward", soft_backward);
  m.impl("stickbreaking_attention", stick);
  m.impl("stickbreaking_attention_backward", stick_backward);
}

TORCH_LIBRARY_IMPL(attest, CPU, m) {
  implement(m, forward_kernel<kSoft>, backward_kernel<kSoft>, forward_kernel<kStick>, backward_kernel<kStick>);
}

TORCH_LIBRARY_IMPL(attest, CUDA, m) {
  implement(m, forward_kernel<kSoft>, backward_kernel<kSoft>, forward_kernel<kStick>, backward_kernel<kStick>);
}

TORCH_LIBRARY_IMPL(attest, Meta, m) {
  implement(m, forward_meta<kSoft>, backward_meta<kSoft>, forward_meta<kStick>, backward_meta<kStick>);
}

TORCH_LIBRARY_IMPL(attest, Autograd, m) {
  m.impl("softmax_attention", autograd_kernel<kSoft>);
  m.impl("stickbreaking_attention", autograd_kernel<kStick>);
}

}  // namespace
}  // namespace attest
