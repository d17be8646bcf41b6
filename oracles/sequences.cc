#include "oracles/sequences.h"

#include <fmt/format.h>

#include <limits>

#include "harness/error.h"

namespace attest {
namespace {

at::Tensor rows(const at::Tensor& t, int64_t batch, int64_t begin, int64_t count) {
  return t.defined() ? t.narrow(0, batch, 1).narrow(2, begin, count) : t;
}

Inputs cut(const Inputs& in, const Sequence& s) {
  Inputs out;
  out.problem = in.problem;
  out.problem.batch = 1;
  out.problem.seqlen_q = s.n_q;
  out.problem.seqlen_kv = s.n_kv;
  out.q = rows(in.q, s.batch, s.q_begin, s.n_q);
  out.k = rows(in.k, s.batch, s.kv_begin, s.n_kv);
  out.v = rows(in.v, s.batch, s.kv_begin, s.n_kv);
  out.dout = rows(in.dout, s.batch, s.q_begin, s.n_q);
  out.dlse = rows(in.dlse, s.batch, s.q_begin, s.n_q);
  if (in.key_padding_mask.defined())
    out.key_padding_mask = in.key_padding_mask.narrow(0, s.batch, 1).narrow(1, s.kv_begin, s.n_kv);
  return out;
}

/// What the definitions give where nothing is visible.
ReferenceQuantity nothing_visible(at::IntArrayRef shape, double value) {
  std::vector<int64_t> planes(shape.begin(), shape.end());
  planes.insert(planes.begin(), enum_size<ErrorSource>());
  const at::TensorOptions options(at::kDouble);
  return {.value = at::full(shape, value, options), .radius = at::zeros(shape, options), .terms = at::zeros(planes, options),
          .trivial = at::full(shape, std::numeric_limits<double>::infinity(), options), .low = at::zeros(shape, options)};
}

Reference blank(const Inputs& in) {
  const AttentionProblem& p = in.problem;
  Reference r;
  const double lse = p.op == Op::kSoftmax ? -std::numeric_limits<double>::infinity() : 1.0;
  r[Quantity::kOut] = nothing_visible({p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v}, 0);
  r[Quantity::kLse] = nothing_visible({p.batch, p.num_heads_q, p.seqlen_q}, lse);
  if (!in.backward()) return r;
  r[Quantity::kDq] = nothing_visible(in.q.sizes(), 0);
  r[Quantity::kDk] = nothing_visible(in.k.sizes(), 0);
  r[Quantity::kDv] = nothing_visible(in.v.sizes(), 0);
  return r;
}

void put(Reference& whole, const Sequence& s, const Reference& part) {
  for (const Quantity quantity : EnumSet<Quantity>::all().members()) {
    ReferenceQuantity& to = whole[quantity];
    const ReferenceQuantity& from = part[quantity];
    if (!to.value.defined()) continue;
    const bool keys = sums_over_queries(quantity);
    const int64_t begin = keys ? s.kv_begin : s.q_begin, count = keys ? s.n_kv : s.n_q;
    rows(to.value, s.batch, begin, count).copy_(from.value);
    rows(to.radius, s.batch, begin, count).copy_(from.radius);
    rows(to.trivial, s.batch, begin, count).copy_(from.trivial);
    if (from.low.defined()) rows(to.low, s.batch, begin, count).copy_(from.low);
    to.terms.narrow(1, s.batch, 1).narrow(3, begin, count).copy_(from.terms);
  }
}

void check(const Inputs& in, const Sequence& s) {
  const AttentionProblem& p = in.problem;
  const auto outside = [](int64_t begin, int64_t count, int64_t size) { return begin < 0 || count < 0 || begin + count > size; };
  if (s.batch < 0 || s.batch >= p.batch || outside(s.q_begin, s.n_q, p.seqlen_q) || outside(s.kv_begin, s.n_kv, p.seqlen_kv))
    throw UsageError(fmt::format("a sequence of batch element {}, queries {} + {}, keys {} + {}, leaves tensors of {} × {} × {}",
                                 s.batch, s.q_begin, s.n_q, s.kv_begin, s.n_kv, p.batch, p.seqlen_q, p.seqlen_kv));
}

}  // namespace

Reference evaluate_sequences(const Oracle& oracle, const Inputs& inputs, const std::vector<Sequence>& sequences, size_t tier) {
  if (const auto reason = inputs.invalid_reason()) throw UsageError(*reason);
  Reference whole = blank(inputs);
  for (const Sequence& s : sequences) {
    check(inputs, s);
    if (s.n_q > 0 && s.n_kv > 0) put(whole, s, oracle.evaluate(cut(inputs, s), tier));
  }
  return whole;
}

std::vector<Sequence> with_lengths(const std::vector<int64_t>& seqlens_q, const std::vector<int64_t>& seqlens_kv) {
  if (seqlens_q.size() != seqlens_kv.size()) throw UsageError("seqlens_q and seqlens_kv name different numbers of sequences");
  std::vector<Sequence> out;
  for (size_t b = 0; b < seqlens_q.size(); ++b) out.push_back({static_cast<int64_t>(b), 0, seqlens_q[b], 0, seqlens_kv[b]});
  return out;
}

Inputs packed_as_batch(const AttentionProblem& problem, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                       const at::Tensor& dout, const at::Tensor& dlse) {
  const auto batch = [](const at::Tensor& t) { return t.defined() ? t.transpose(0, 1).unsqueeze(0) : t; };
  Inputs in;
  in.problem = problem;
  in.problem.batch = 1;
  in.problem.seqlen_q = q.size(0);
  in.problem.seqlen_kv = k.size(0);
  in.q = batch(q);
  in.k = batch(k);
  in.v = batch(v);
  in.dout = batch(dout);
  in.dlse = dlse.defined() ? dlse.unsqueeze(0) : dlse;
  return in;
}

std::vector<Sequence> packed(const std::vector<int64_t>& cu_seqlens_q, const std::vector<int64_t>& cu_seqlens_kv) {
  if (cu_seqlens_q.size() != cu_seqlens_kv.size()) throw UsageError("cu_seqlens_q and cu_seqlens_kv name different numbers of sequences");
  std::vector<Sequence> out;
  for (size_t s = 0; s + 1 < cu_seqlens_q.size(); ++s)
    out.push_back({0, cu_seqlens_q[s], cu_seqlens_q[s + 1] - cu_seqlens_q[s], cu_seqlens_kv[s],
                   cu_seqlens_kv[s + 1] - cu_seqlens_kv[s]});
  return out;
}

}  // namespace attest
