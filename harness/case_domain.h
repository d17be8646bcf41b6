// CaseDomain: a plain value that says which cases something is for. A variant declares what it supports, a property where
// its law holds, an oracle what it can afford, the command line one more. Generators draw from the intersection.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "harness/case.h"

namespace attest {

struct Inputs;

/// Inclusive.
struct Range {
  int64_t lo = 1;
  int64_t hi = std::numeric_limits<int64_t>::max();
  bool operator==(const Range&) const = default;
  bool contains(int64_t x) const { return lo <= x && x <= hi; }
  bool empty() const { return lo > hi; }
};

/// The default value holds every valid case of whole batches: a kernel or a law that does not speak of sequences is given none.
struct CaseDomain {
  EnumSet<Op> ops = EnumSet<Op>::all();
  EnumSet<Dtype> dtypes = EnumSet<Dtype>::all();
  Range batch, num_heads_q, num_heads_kv, group, seqlen_q, seqlen_kv, head_dim, head_dim_v;
  int64_t head_dim_multiple = 1;    // of both head_dim and head_dim_v
  bool equal_head_dims = false;     // only head_dim_v = head_dim
  bool square_if_causal = false;    // causal only where Sq = Skv
  bool queries_within_keys = false; // only Sq ≤ Skv
  EnumSet<bool> causal = EnumSet<bool>::all();
  EnumSet<bool> attend_current = EnumSet<bool>::all();
  EnumSet<Sequences> sequences{Sequences::kWhole};
  EnumSet<KeyPadding> padding = EnumSet<KeyPadding>::all();
  EnumSet<bool> poison = EnumSet<bool>::all();
  EnumSet<bool> dlse = EnumSet<bool>::all();
  EnumSet<bool> negative_or_zero_scale = EnumSet<bool>::all();  // {false}: only scale > 0
  EnumSet<LogitFill> logits = EnumSet<LogitFill>::all();
  EnumSet<ValueFill> values = EnumSet<ValueFill>::all();
  EnumSet<Layout> layouts = EnumSet<Layout>::all();
  int64_t max_work = std::numeric_limits<int64_t>::max();  // of AttentionProblem::work()

  bool operator==(const CaseDomain&) const = default;

  /// Why `c` lies outside, e.g. "D=72 is not a multiple of 16"; nothing when it lies inside.
  std::optional<std::string> excludes(const Case& c) const;
  /// As above, for a problem or for inputs that no Case made: only what they themselves say.
  std::optional<std::string> excludes(const AttentionProblem& p) const;
  std::optional<std::string> excludes(const Inputs& inputs) const;
  CaseDomain operator&(const CaseDomain& other) const;
  /// What makes the domain empty, e.g. "no dtype is left"; nothing when a case may exist.
  std::optional<std::string> empty_reason() const;
};

/// Every valid case: & with it changes nothing.
inline CaseDomain every_case() { return {.sequences = EnumSet<Sequences>::all()}; }

}  // namespace attest
