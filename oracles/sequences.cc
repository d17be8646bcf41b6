#include "oracles/sequences.h"

#include <limits>

#include "harness/error.h"

namespace attest {
namespace {

at::Tensor rows(const at::Tensor& t, int64_t batch, int64_t begin, int64_t count) {
  return t.defined() ? t.narrow(0, batch, 1).narrow(2, begin, count) : t;
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

}  // namespace

Reference evaluate_sequences(const Inputs& inputs, const std::function<Reference(const Inputs&)>& evaluate) {
  if (const auto reason = inputs.invalid_reason()) throw UsageError(*reason);
  if (inputs.kind == Sequences::kWhole) return evaluate(inputs);
  Reference whole = blank(inputs);
  for (const Sequence& s : inputs.sequences) {
    if (s.n_q == 0 || s.n_kv == 0) continue;
    const Reference part = evaluate(one_sequence(inputs, s));
    whole.oracle = part.oracle;
    put(whole, s, part);
  }
  return whole;
}

}  // namespace attest
