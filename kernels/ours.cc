#include "kernels/ours.h"

#include <fmt/format.h>

#include "harness/variant.h"
#include "kernels/hopper/stick_saved.h"
#include "kernels/two_halves.h"

namespace attest {
namespace {

/// Why `name` can't run, or nothing.
std::optional<std::string> refusal(const std::string& name, const Inputs& in) {
  const KernelVariant* variant = Registry<KernelVariant>::instance().find(name);
  if (variant == nullptr)
    return std::string("this build has no such kernel") + (in.q.is_cuda() ? "; build with nvcc to run on CUDA" : "");
  if (auto reason = variant->domain.excludes(in)) return reason;
  return variant->refuses ? variant->refuses(in) : std::nullopt;
}

/// The name of the first of our variants that takes the inputs, fastest first.
std::string name_for(const Inputs& in) {
  const std::string prefix = fmt::format("{}.{}.", name_of(in.problem.op), in.q.is_cuda() ? "cuda" : "cpu");
  if (in.q.is_cuda() && !refusal(prefix + "fused", in)) return prefix + "fused";
  const auto reason = refusal(prefix + "fixed_order", in);
  TORCH_CHECK(!reason, prefix, "fixed_order: ", reason.value_or(""));
  return prefix + "fixed_order";
}

Outputs run_whole(const std::string& name, const Inputs& in) { return Registry<KernelVariant>::instance().find(name)->run(in); }

}  // namespace

c10::SymInt saved_bytes_of_ours(Op op, const c10::SymInt& heads, const c10::SymInt& seqlen_q, const c10::SymInt& seqlen_kv) {
  return op == Op::kSoftmax ? softmax_saved_bytes(heads, seqlen_q) : stick::saved_bytes_of(heads, seqlen_q, seqlen_kv);
}

Outputs forward_of_ours(const Inputs& in, const at::Tensor& saved) {
  const std::string name = name_for(in);
  const TwoHalves* halves = Registry<TwoHalves>::instance().find(name);
  if (halves == nullptr) return run_whole(name, in);
  const AttentionProblem& p = in.problem;
  const Outputs to{.out = at::empty({p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v}, in.q.options()),
                   .lse = at::empty({p.batch, p.num_heads_q, p.seqlen_q}, in.q.options().dtype(at::kFloat))};
  halves->forward(in, to, saved.defined() ? saved : at::empty({0}, in.q.options().dtype(at::kByte)));
  return to;
}

Outputs backward_of_ours(const Inputs& in, const at::Tensor& out, const at::Tensor& lse, const at::Tensor& saved) {
  const std::string name = name_for(in);
  const TwoHalves* halves = Registry<TwoHalves>::instance().find(name);
  if (halves == nullptr) return run_whole(name, in);
  const auto like = [&](const at::Tensor& x) { return at::empty(x.sizes(), x.options()); };
  const Outputs to{.out = out, .lse = lse, .dq = like(in.q), .dk = like(in.k), .dv = like(in.v)};
  halves->backward(in, to, saved);
  return to;
}

}  // namespace attest
