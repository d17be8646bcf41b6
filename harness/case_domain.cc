#include "harness/case_domain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "harness/smallest.h"
#include "harness/tensors.h"

namespace attest {
namespace {

using Reason = std::optional<std::string>;

Reason outside(std::string_view name, int64_t x, const Range& range) {
  if (x < range.lo) return fmt::format("{}={} is below {}", name, x, range.lo);
  if (x > range.hi) return fmt::format("{}={} is above {}", name, x, range.hi);
  return std::nullopt;
}

template <class E>
Reason outside(std::string_view name, E e, EnumSet<E> set) {
  if (set.contains(e)) return std::nullopt;
  std::vector<std::string_view> names;
  for (E member : set.members()) names.push_back(name_of(member));
  return fmt::format("{} {} is not among {{{}}}", name, name_of(e), fmt::join(names, ", "));
}

Reason flag_outside(bool value, EnumSet<bool> set, std::string_view when_true, std::string_view when_false) {
  if (set.contains(value)) return std::nullopt;
  return std::string(value ? when_true : when_false);
}

Reason first_of(std::initializer_list<Reason> reasons) {
  for (const Reason& reason : reasons)
    if (reason) return reason;
  return std::nullopt;
}

Reason sizes_outside(const CaseDomain& d, const AttentionProblem& p) {
  return first_of({outside("B", p.batch, d.batch), outside("Hq", p.num_heads_q, d.num_heads_q),
                   outside("Hkv", p.num_heads_kv, d.num_heads_kv), outside("Hq/Hkv", p.group(), d.group),
                   outside("Sq", p.seqlen_q, d.seqlen_q), outside("Skv", p.seqlen_kv, d.seqlen_kv),
                   outside("D", p.head_dim, d.head_dim), outside("Dv", p.head_dim_v, d.head_dim_v)});
}

Reason shape_outside(const CaseDomain& d, const AttentionProblem& p) {
  for (const auto& [name, dim] : {std::pair{"D", p.head_dim}, std::pair{"Dv", p.head_dim_v}})
    if (dim % d.head_dim_multiple != 0) return fmt::format("{}={} is not a multiple of {}", name, dim, d.head_dim_multiple);
  if (d.equal_head_dims && p.head_dim != p.head_dim_v) return fmt::format("Dv={} differs from D={}", p.head_dim_v, p.head_dim);
  if (d.square_if_causal && p.causal && p.seqlen_q != p.seqlen_kv)
    return fmt::format("causal with Sq={} and Skv={}: they must be equal", p.seqlen_q, p.seqlen_kv);
  if (d.queries_within_keys && p.seqlen_q > p.seqlen_kv) return fmt::format("Sq={} is above Skv={}", p.seqlen_q, p.seqlen_kv);
  if (p.work() > d.max_work) return fmt::format("its work {} is above {}", p.work(), d.max_work);
  return std::nullopt;
}

Range operator&(const Range& a, const Range& b) { return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)}; }

Reason empty_sets(const CaseDomain& d) {
  if (d.ops.empty()) return "no operator is left";
  if (d.dtypes.empty()) return "no dtype is left";
  if (d.sequences.empty()) return "neither whole batches nor sequences are left";
  if (d.padding.empty()) return "no key padding is left";
  if (d.logits.empty()) return "no fill of the logits is left";
  if (d.values.empty()) return "no fill of the values is left";
  if (d.layouts.empty()) return "no layout is left";
  if (d.poison.empty()) return "neither poison nor its absence is left";
  if (d.dlse.empty()) return "neither dlse nor its absence is left";
  if (d.negative_or_zero_scale.empty()) return "no sign of the scale is left";
  if (d.poison == EnumSet<bool>{true} && d.padding == EnumSet<KeyPadding>{KeyPadding::kNone} &&
      d.sequences == EnumSet<Sequences>{Sequences::kWhole})
    return "poison is asked for and key padding is excluded";
  return std::nullopt;
}

Reason empty_ranges(const CaseDomain& d) {
  const std::pair<const char*, Range> ranges[] = {{"B", d.batch},      {"Hq", d.num_heads_q}, {"Hkv", d.num_heads_kv},
                                                  {"Hq/Hkv", d.group}, {"Sq", d.seqlen_q},    {"Skv", d.seqlen_kv},
                                                  {"D", d.head_dim},   {"Dv", d.head_dim_v}};
  for (const auto& [name, range] : ranges)
    if (range.empty()) return fmt::format("no {} is left", name);
  return std::nullopt;
}

/// Some operator and mask must leave a smallest case.
Reason empty_combination(const CaseDomain& d) {
  Reason reason = "no mask is left for the operator";
  for (Op op : d.ops.members())
    for (bool causal : d.causal.members()) {
      const bool stick = op == Op::kStickBreaking;
      if (stick ? !causal || d.attend_current.empty() : !d.attend_current.contains(false)) continue;
      AttentionProblem p{.op = op, .causal = causal};
      if (!(reason = set_smallest_sizes(d, p))) return std::nullopt;
    }
  return reason;
}

}  // namespace

std::optional<std::string> CaseDomain::excludes(const AttentionProblem& p) const {
  return first_of({outside("op", p.op, ops), outside("dtype", p.dtype, dtypes), sizes_outside(*this, p), shape_outside(*this, p),
                   flag_outside(p.causal, causal, "causal is excluded", "only causal is inside"),
                   flag_outside(p.attend_current, attend_current, "attend_current is excluded", "only attend_current is inside"),
                   flag_outside(p.softmax_scale <= 0, negative_or_zero_scale, "a scale that is not positive is excluded",
                                "only scales that are not positive are inside")});
}

std::optional<std::string> CaseDomain::excludes(const Inputs& in) const {
  if (auto reason = outside("sequences", in.kind, sequences)) return reason;
  return excludes(in.extent());
}

std::optional<std::string> CaseDomain::excludes(const Case& c) const {
  if (auto reason = excludes(c.problem)) return reason;
  return first_of({outside("sequences", c.sequences, sequences), outside("padding", c.padding, padding), outside("logits", c.logits, logits),
                   outside("values", c.values, values), outside("layout", c.layout, layouts),
                   flag_outside(c.poison, poison, "poison is excluded", "only poisoned padding is inside"),
                   flag_outside(c.dlse, dlse, "dlse is excluded", "only cases with dlse are inside")});
}

std::optional<std::string> CaseDomain::empty_reason() const {
  if (auto reason = empty_sets(*this)) return reason;
  if (auto reason = empty_ranges(*this)) return reason;
  return empty_combination(*this);
}

CaseDomain CaseDomain::operator&(const CaseDomain& o) const {
  CaseDomain d = *this;
  d.ops = ops & o.ops;
  d.dtypes = dtypes & o.dtypes;
  for (auto field : {&CaseDomain::batch, &CaseDomain::num_heads_q, &CaseDomain::num_heads_kv, &CaseDomain::group,
                     &CaseDomain::seqlen_q, &CaseDomain::seqlen_kv, &CaseDomain::head_dim, &CaseDomain::head_dim_v})
    d.*field = this->*field & o.*field;
  d.head_dim_multiple = std::lcm(head_dim_multiple, o.head_dim_multiple);
  d.equal_head_dims |= o.equal_head_dims;
  d.square_if_causal |= o.square_if_causal;
  d.queries_within_keys |= o.queries_within_keys;
  for (auto field : {&CaseDomain::causal, &CaseDomain::attend_current, &CaseDomain::poison, &CaseDomain::dlse,
                     &CaseDomain::negative_or_zero_scale})
    d.*field = this->*field & o.*field;
  d.sequences = sequences & o.sequences;
  d.padding = padding & o.padding;
  d.logits = logits & o.logits;
  d.values = values & o.values;
  d.layouts = layouts & o.layouts;
  d.max_work = std::min(max_work, o.max_work);
  return d;
}

}  // namespace attest
