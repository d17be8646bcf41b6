// Registers attest::softmax_attention and attest::stickbreaking_attention with Torch; kernels/ours.* chooses the kernel. Under autograd
// the forward is *_forward, which keeps what the kernel of the backward can use, beside q, k, v, out and lse or rem: the fused kernels
// save a second forward by it, others run theirs again. lse and rem are differentiable. A second-order gradient raises, and only when
// it is asked for.
#include "kernels/torch_operators.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <cmath>
#include <tuple>

#include "harness/tensors.h"
#include "kernels/ours.h"

namespace attest {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;
using Pair = std::tuple<Tensor, Tensor>;
using Triple = std::tuple<Tensor, Tensor, Tensor>;
using Forward = Pair(const Tensor&, const Tensor&, const Tensor&, const MaybeTensor&, bool, std::optional<double>);
using SavingForward = Triple(const Tensor&, const Tensor&, const Tensor&, const MaybeTensor&, bool, std::optional<double>);
using Backward = Triple(const MaybeTensor&, const MaybeTensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                        const Tensor&, const Tensor&, const MaybeTensor&, bool, std::optional<double>);

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

template <Op kOp>
c10::SymInt saved_size(const Tensor& q, const Tensor& k) {
  return saved_bytes_of_ours(kOp, q.sym_size(0) * q.sym_size(1), q.sym_size(2), k.sym_size(2));
}

template <Op kOp>
Pair forward_kernel(const Tensor& q, const Tensor& k, const Tensor& v, const MaybeTensor& mask, bool flag,
                    std::optional<double> scale) {
  const Outputs o = forward_of_ours(make_inputs<kOp>(q, k, v, mask, flag, scale), Tensor());
  return {o.out, o.lse};
}

template <Op kOp>
Triple saving_kernel(const Tensor& q, const Tensor& k, const Tensor& v, const MaybeTensor& mask, bool flag,
                     std::optional<double> scale) {
  const Inputs inputs = make_inputs<kOp>(q, k, v, mask, flag, scale);
  const Tensor saved = at::empty({saved_size<kOp>(q, k).expect_int()}, q.options().dtype(at::kByte));
  const Outputs o = forward_of_ours(inputs, saved);
  return {o.out, o.lse, saved};
}

void check_of_forward(const char* name, const Tensor& out, const Tensor& lse, const Tensor& saved, const Inputs& in,
                      const c10::SymInt& size) {
  const AttentionProblem& p = in.problem;
  const bool of_it = out.sizes() == at::IntArrayRef({p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v}) &&
                     out.scalar_type() == in.q.scalar_type() && lse.sizes() == out.sizes().slice(0, 3) &&
                     lse.scalar_type() == at::kFloat && saved.is_contiguous() && saved.numel() == size.expect_int() &&
                     saved.scalar_type() == at::kByte;
  TORCH_CHECK(of_it, name, "_backward: the tensors after the two gradients must be those that ", name,
              "_forward gave for these q, k and v; got ", out.sizes(), ", ", lse.sizes(), " and ", saved.sizes());
  for (const Tensor& t : {out, lse, saved})
    TORCH_CHECK(t.device() == in.q.device(), name, "_backward: what the forward gave is on ", t.device(), ", q on ",
                in.q.device());
}

template <Op kOp>
Triple backward_kernel(const MaybeTensor& dout, const MaybeTensor& dlse, const Tensor& out, const Tensor& lse,
                       const Tensor& saved, const Tensor& q, const Tensor& k, const Tensor& v, const MaybeTensor& mask, bool flag,
                       std::optional<double> scale) {
  Inputs inputs = make_inputs<kOp>(q, k, v, mask, flag, scale);
  check_of_forward(kName<kOp>, out, lse, saved, inputs, saved_size<kOp>(q, k));
  inputs.dout = or_undefined(dout);
  inputs.dlse = or_undefined(dlse);
  if (!inputs.dout.defined()) inputs.dout = at::zeros(out.sizes(), q.options());
  if (auto reason = inputs.invalid_reason()) TORCH_CHECK(false, kName<kOp>, "_backward: ", *reason);
  const Outputs o = backward_of_ours(inputs, out, lse, saved);
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
Triple saving_meta(const Tensor& q, const Tensor& k, const Tensor& v, const MaybeTensor& mask, bool flag,
                   std::optional<double> scale) {
  const auto [out, lse] = forward_meta<kOp>(q, k, v, mask, flag, scale);
  return {out, lse, q.new_empty_symint({saved_size<kOp>(q, k)}, q.options().dtype(at::kByte))};
}

template <Op kOp>
Triple backward_meta(const MaybeTensor&, const MaybeTensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor& q,
                     const Tensor& k, const Tensor& v, const MaybeTensor& mask, bool, std::optional<double> scale) {
  check_arguments(kName<kOp>, q, k, v, mask, scale);
  return {q.new_empty_symint(q.sym_sizes()), k.new_empty_symint(k.sym_sizes()), v.new_empty_symint(v.sym_sizes())};
}

/// The operator `name`, below autograd.
template <class Signature, class... Args>
auto call(const std::string& name, const Args&... args) {
  const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), "").template typed<Signature>();
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return handle.call(args...);
}

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The backward as a node of its own: under create_graph it can be built, and raises once it is differentiated itself.
template <Op kOp>
struct FirstOrderOnly : torch::autograd::Function<FirstOrderOnly<kOp>> {
  static variable_list forward(AutogradContext*, const MaybeTensor& dout, const MaybeTensor& dlse, const Tensor& out,
                               const Tensor& lse, const Tensor& saved, const Tensor& q, const Tensor& k, const Tensor& v,
                               const MaybeTensor& mask, bool flag, std::optional<double> scale) {
    static const std::string name = std::string(kName<kOp>) + "_backward";
    const auto [dq, dk, dv] = call<Backward>(name, dout, dlse, out, lse, saved, q, k, v, mask, flag, scale);
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
    static const std::string name = std::string(kName<kOp>) + "_forward";
    ctx->set_materialize_grads(false);
    const auto [out, lse, saved] = call<SavingForward>(name, q, k, v, mask, flag, scale);
    ctx->save_for_backward({q, k, v, or_undefined(mask), out, lse, saved});
    ctx->saved_data["flag"] = flag;
    ctx->saved_data["scale"] = scale;
    return {out, lse};
  }

  /// In the order of forward's arguments. get_saved_variables raises when one was modified since.
  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    if (!gradients[0].defined() && !gradients[1].defined()) return variable_list(6);
    const auto saved = ctx->get_saved_variables();
    const auto maybe = [](const Tensor& t) { return t.defined() ? MaybeTensor(t) : std::nullopt; };
    auto d = FirstOrderOnly<kOp>::apply(maybe(gradients[0]), maybe(gradients[1]), saved[4], saved[5], saved[6], saved[0],
                                        saved[1], saved[2], maybe(saved[3]), ctx->saved_data["flag"].toBool(),
                                        ctx->saved_data["scale"].toOptional<double>());
    return {d[0], d[1], d[2], Tensor(), Tensor(), Tensor()};
  }
};

template <Op kOp>
Pair autograd_kernel(const Tensor& q, const Tensor& k, const Tensor& v, const MaybeTensor& mask, bool flag,
                     std::optional<double> scale) {
  const bool differentiated = at::GradMode::is_enabled() && (q.requires_grad() || k.requires_grad() || v.requires_grad());
  if (!differentiated) return call<Forward>(kName<kOp>, q, k, v, mask, flag, scale);
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
    m.def(fmt::format("{}_forward({} -> (Tensor out, Tensor {}, Tensor saved)", name, tail, second).c_str());
    const std::string of_forward = fmt::format("Tensor out, Tensor {}, Tensor saved, ", second);
    m.def(fmt::format("{}_backward(Tensor? dout, Tensor? d{}, {}{} -> (Tensor dq, Tensor dk, Tensor dv)", name, second, of_forward, tail)
              .c_str());
  };
  define("softmax_attention", "causal", "lse");
  define("stickbreaking_attention", "attend_current", "rem");
}

template <Op kOp>
void implement(torch::Library& m) {
  const std::string name = std::string(kName<kOp>).substr(std::string("attest::").size());
  m.impl(name.c_str(), forward_kernel<kOp>);
  m.impl((name + "_forward").c_str(), saving_kernel<kOp>);
  m.impl((name + "_backward").c_str(), backward_kernel<kOp>);
}
template <Op kOp>
void implement_meta(torch::Library& m) {
  const std::string name = std::string(kName<kOp>).substr(std::string("attest::").size());
  m.impl(name.c_str(), forward_meta<kOp>);
  m.impl((name + "_forward").c_str(), saving_meta<kOp>);
  m.impl((name + "_backward").c_str(), backward_meta<kOp>);
}

TORCH_LIBRARY_IMPL(attest, CPU, m) { implement<kSoft>(m), implement<kStick>(m); }
TORCH_LIBRARY_IMPL(attest, CUDA, m) { implement<kSoft>(m), implement<kStick>(m); }
TORCH_LIBRARY_IMPL(attest, Meta, m) { implement_meta<kSoft>(m), implement_meta<kStick>(m); }

TORCH_LIBRARY_IMPL(attest, Autograd, m) {
  m.impl("softmax_attention", autograd_kernel<kSoft>);
  m.impl("stickbreaking_attention", autograd_kernel<kStick>);
}

}  // namespace
}  // namespace attest
