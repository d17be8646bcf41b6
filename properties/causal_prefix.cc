// Property causal_prefix: later keys and values, finite ones, reach no bit of an earlier row. Keys hidden only by
// causality are never poisoned: a matrix unit may multiply them by zero. dk and dv are sums over all queries: not judged.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/slice.h"
#include "properties/support.h"

namespace attest {
namespace {

/// The first key hidden from `row` by causality.
int64_t first_hidden_key(const AttentionProblem& p, int64_t row) {
  const bool sees_itself = p.op == Op::kSoftmax || p.attend_current;
  return std::max<int64_t>(0, p.position(row) + (sees_itself ? 1 : 0));
}

/// 1 − x from `key` on: finite, near in size, and different from x wherever x is not ½.
at::Tensor changed_from(const at::Tensor& t, int64_t key) {
  at::Tensor other = t.clone(at::MemoryFormat::Contiguous);
  at::Tensor later = other.narrow(2, key, other.size(2) - key);
  later.copy_(1.0 - later);
  return other;
}

Verdict causal_prefix(Trial& trial) {
  const Inputs& in = trial.inputs();
  const AttentionProblem& p = in.problem;
  if (!p.causal) return vacuous("the problem is not causal");
  std::vector<Part> parts;
  for (int64_t row : std::set<int64_t>{0, (p.seqlen_q - 1) / 2, p.seqlen_q - 1}) {
    const int64_t key = first_hidden_key(p, row);
    if (key >= p.seqlen_kv) continue;
    Inputs other = in;
    other.k = changed_from(in.k, key);
    other.v = changed_from(in.v, key);
    parts.push_back({.what = fmt::format("the run with other keys from {} on, none that query {} sees,", key, row),
                     .inputs = std::move(other),
                     .queries = row + 1});
  }
  if (parts.empty()) return vacuous("every key is seen by the first query");
  return equal_bits(trial, parts);
}

const RegisterPair registered(
    {
        .name = "causal_prefix",
        .law = "Under a causal mask, later keys and values change no bit of an earlier row (out, lse or rem, dq).",
        .domain = {.causal = {true}},
        .faulty = "faulty.softmax.peeks_ahead",
        .check = causal_prefix,
    },
    {Quantity::kDq});

}  // namespace
}  // namespace attest
