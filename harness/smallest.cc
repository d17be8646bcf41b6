#include "harness/smallest.h"

#include <fmt/format.h>

#include <algorithm>

namespace attest {
namespace {

using Reason = std::optional<std::string>;

Range operator&(const Range& a, const Range& b) { return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)}; }

int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

/// The smallest Hq = Hkv · group, then the smallest Hkv.
Reason set_heads(const CaseDomain& d, AttentionProblem& p) {
  constexpr int64_t kSearched = 4096;  // numbers of KV heads tried
  const int64_t ideal = std::max(d.num_heads_q.lo, d.num_heads_kv.lo * d.group.lo);
  bool found = false;
  for (int64_t kv = d.num_heads_kv.lo; kv <= d.num_heads_kv.hi && kv - d.num_heads_kv.lo < kSearched; ++kv) {
    const int64_t q = kv * std::max(d.group.lo, ceil_div(d.num_heads_q.lo, kv));
    if (q > d.num_heads_q.hi || q / kv > d.group.hi || (found && q >= p.num_heads_q)) continue;
    p.num_heads_q = q;
    p.num_heads_kv = kv;
    found = true;
    if (q == ideal) break;
  }
  return found ? std::nullopt : Reason("no Hq is a multiple of an Hkv");
}

Reason set_lengths(const CaseDomain& d, AttentionProblem& p) {
  p.seqlen_q = d.seqlen_q.lo;
  p.seqlen_kv = d.seqlen_kv.lo;
  if (d.square_if_causal && p.causal) p.seqlen_q = p.seqlen_kv = (d.seqlen_q & d.seqlen_kv).lo;
  if (d.queries_within_keys) p.seqlen_kv = std::max(p.seqlen_q, p.seqlen_kv);
  if (!d.seqlen_q.contains(p.seqlen_q)) return "no Sq can equal Skv";
  if (!d.seqlen_kv.contains(p.seqlen_kv)) return "every Sq is above every Skv";
  return std::nullopt;
}

Reason set_dims(const CaseDomain& d, AttentionProblem& p) {
  const Range both = d.head_dim & d.head_dim_v;
  const auto dim = first_multiple(d.equal_head_dims ? both : d.head_dim, d.head_dim_multiple);
  const auto dim_v = first_multiple(d.equal_head_dims ? both : d.head_dim_v, d.head_dim_multiple);
  if (!dim || !dim_v)
    return d.equal_head_dims ? "no D can equal Dv" : fmt::format("no D or Dv is a multiple of {}", d.head_dim_multiple);
  p.head_dim = *dim;
  p.head_dim_v = *dim_v;
  if (p.softmax_scale > 0) p.softmax_scale = default_softmax_scale(p.head_dim);
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> first_multiple(const Range& range, int64_t multiple) {
  const int64_t steps = ceil_div(range.lo, multiple);
  if (range.empty() || steps > range.hi / multiple) return std::nullopt;
  return steps * multiple;
}

std::optional<std::string> set_smallest_sizes(const CaseDomain& d, AttentionProblem& p) {
  p.batch = d.batch.lo;
  if (auto reason = set_heads(d, p)) return reason;
  if (auto reason = set_lengths(d, p)) return reason;
  if (auto reason = set_dims(d, p)) return reason;
  if (p.work() > d.max_work) return fmt::format("the smallest case needs {} multiply-adds, above {}", p.work(), d.max_work);
  return std::nullopt;
}

}  // namespace attest
