// softmax.certified and stickbreaking.certified: vectorised double, then double-double, then balls of growing precision, each
// with a proven radius (certified/README.md); a verdict that one leaves open is judged with the next. Unusual: they cost little
// more than a plain double evaluation, so that lengths need no limit. They promise value + low ± radius for every element.
#include <ATen/Parallel.h>

#include <cmath>

#include "harness/error.h"
#include "harness/oracle.h"
#include "harness/reference.h"
#include "harness/tensors.h"
#include "oracles/group_problem.h"
#include "oracles/sequences.h"

namespace attest {
namespace {

/// A tier: an engine, and for balls its precision.
struct Tier {
  const char* name;
  int bits;  // 0: no balls
};
constexpr Tier kTiers[] = {{"double", 0}, {"double-double", 0}, {"128-bit balls", 128}, {"256-bit balls", 256}, {"512-bit balls", 512}};

int significand_bits(Dtype dtype) { return dtype == Dtype::kBFloat16 ? 8 : dtype == Dtype::kFloat16 ? 11 : 24; }

at::Tensor widened(const at::Tensor& t) { return t.defined() ? t.detach().to(at::kDouble).contiguous() : t; }

/// Elements [group, index, row, width] of a [batch, heads, rows, width] or [batch, heads, rows] tensor from `head` on.
const double* from(const at::Tensor& t, int64_t b, int64_t head) {
  return t.defined() ? t.const_data_ptr<double>() + b * t.stride(0) + head * t.stride(1) : nullptr;
}

class Evaluation {
 public:
  /// Tier 0 gives one double: its rounding is then within the radius.
  Evaluation(const Inputs& in, size_t tier)
      : p_(in.problem), tier_(tier), q_(widened(in.q)), k_(widened(in.k)), v_(widened(in.v)), dout_(widened(in.dout)),
        dlse_(in.backward() ? widened(in.dlse) : at::Tensor()),
        keep_(in.key_padding_mask.defined() ? in.key_padding_mask.to(at::kByte).contiguous() : at::Tensor()) {
    const std::vector<int64_t> rows = {p_.batch, p_.num_heads_q, p_.seqlen_q};
    allocate(Quantity::kOut, {p_.batch, p_.num_heads_q, p_.seqlen_q, p_.head_dim_v});
    allocate(Quantity::kLse, rows);
    if (!in.backward()) return;
    allocate(Quantity::kDq, q_.sizes());
    allocate(Quantity::kDk, k_.sizes());
    allocate(Quantity::kDv, v_.sizes());
  }

  /// Balls give no terms: those are taken from the tier below them.
  Reference run() {
    if (tier_ == 0) each_group([](const GroupProblem& g, GroupReference& r, int n) { evaluate_double(g, r, n); });
    if (tier_ > 0) each_group([](const GroupProblem& g, GroupReference& r, int n) { evaluate_double_double(g, r, n); });
    const int bits = kTiers[tier_].bits;
    if (bits > 0) each_group([bits](const GroupProblem& g, GroupReference& r, int) { evaluate_balls(g, r, bits); });
    for (ReferenceQuantity& r : reference_.quantities) {
      if (!r.value.defined()) continue;
      const at::Tensor unknown = r.value.isnan();  // beyond the range of double: known by nothing
      r.value.masked_fill_(unknown, 0);
      if (r.low.defined()) r.low.masked_fill_(unknown, 0);
      r.radius.masked_fill_(unknown, INFINITY);
    }
    return std::move(reference_);
  }

 private:
  void allocate(Quantity quantity, at::IntArrayRef shape) {
    ReferenceQuantity& r = reference_[quantity];
    const at::TensorOptions options(at::kDouble);
    std::vector<int64_t> planes(shape.begin(), shape.end());
    planes.insert(planes.begin(), enum_size<ErrorSource>());
    const auto zeros = [&] { return at::zeros(shape, options); };
    r = {.value = zeros(), .radius = zeros(), .terms = at::zeros(planes, options), .trivial = zeros(), .low = tier_ > 0 ? zeros() : at::Tensor()};
  }

  template <class F>
  void each_group(const F& evaluate) {
    const int threads = at::get_num_threads();
    for (int64_t b = 0; b < p_.batch; ++b)
      for (int64_t kv = 0; kv < p_.num_heads_kv; ++kv) {
        GroupReference reference = outputs(b, kv);
        evaluate(inputs(b, kv), reference, threads);
      }
  }

  GroupProblem inputs(int64_t b, int64_t kv) const {
    const int64_t head = kv * p_.group();
    return {.op = p_.op, .group = p_.group(), .n_q = p_.seqlen_q, .n_kv = p_.seqlen_kv, .head_dim = p_.head_dim,
            .head_dim_v = p_.head_dim_v, .causal = p_.causal, .attend_current = p_.attend_current,
            .softmax_scale = p_.softmax_scale, .q = from(q_, b, head), .k = from(k_, b, kv), .v = from(v_, b, kv),
            .dout = from(dout_, b, head), .dlse = from(dlse_, b, head),
            .keep = keep_.defined() ? keep_.const_data_ptr<uint8_t>() + b * p_.seqlen_kv : nullptr,
            .significand_bits = significand_bits(p_.dtype)};
  }

  GroupReference outputs(int64_t b, int64_t kv) {
    GroupReference group;
    for (Quantity quantity : EnumSet<Quantity>::all().members()) {
      ReferenceQuantity& r = reference_[quantity];
      if (!r.value.defined()) continue;
      const int64_t heads = sums_over_queries(quantity) ? 1 : p_.group(), head = kv * heads;
      const int64_t at = b * r.value.stride(0) + head * r.value.stride(1);
      const auto data = [at](at::Tensor& t) { return t.defined() ? t.mutable_data_ptr<double>() + at : nullptr; };
      group[quantity] = {data(r.value), data(r.low), data(r.radius), data(r.terms), data(r.trivial),
                         r.value.stride(1) * heads, r.value.numel()};
    }
    return group;
  }

  const AttentionProblem& p_;
  const size_t tier_;
  at::Tensor q_, k_, v_, dout_, dlse_, keep_;
  Reference reference_;
};

Reference evaluate_certified(const Inputs& inputs, size_t tier) {
  return evaluate_sequences(inputs, [tier](const Inputs& one) { return Evaluation(one, tier).run(); });
}

Oracle record(Op op) {
  Oracle oracle{.name = std::string(name_of(op)) + ".certified",
                .summary = "double, double-double, then balls, each with a proven radius",
                .domain = {.ops = {op}, .sequences = EnumSet<Sequences>::all(), .max_work = int64_t{1} << 36},
                .evaluate = evaluate_certified};
  const auto missing = balls_unavailable();
  for (const Tier& tier : kTiers)
    if (tier.bits == 0 || !missing) oracle.tiers.emplace_back(tier.name);
  oracle.limit = missing.value_or("512-bit balls are its last tier");
  return oracle;
}

/// Where the CPU cannot run them, OP.definition stays the oracle.
const bool registered = [] {
  if (certified_unavailable()) return false;
  for (const Op op : {Op::kSoftmax, Op::kStickBreaking}) Registry<Oracle>::instance().add(record(op));
  return true;
}();

}  // namespace
}  // namespace attest
