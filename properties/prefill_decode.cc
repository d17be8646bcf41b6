// Property prefill_decode: one query alone against all the keys it may see, as in decoding, gives the bits of its row of
// the prefill; the last row and one in the middle. dk and dv are sums over queries: they are not judged.
#include <fmt/format.h>

#include <set>

#include "harness/slice.h"
#include "properties/support.h"

namespace attest {
namespace {

Verdict prefill_decode(Trial& trial) {
  const Inputs& in = trial.inputs();
  const AttentionProblem& p = in.problem;
  if (p.seqlen_q < 2) return vacuous("there is one query");
  std::vector<Part> parts;
  for (int64_t row : std::set<int64_t>{(p.seqlen_q - 1) / 2, p.seqlen_q - 1}) {
    if (p.causal && p.position(row) < 0) continue;  // no key is cached yet
    parts.push_back({.what = fmt::format("query {} decoded alone", row),
                     .inputs = slice_queries(in, row, 1),
                     .query_begin = row});
  }
  return equal_bits(trial, parts);
}

const RegisterPair registered(
    {
        .name = "prefill_decode",
        .law = "A query decoded alone, against the keys it may see, gives the bits of its row of the prefill "
               "(out, lse or rem, dq).",
        .domain = {.seqlen_q = {.lo = 2}},
        .faulty = "faulty.softmax.chunk_splits",
        .check = prefill_decode,
    },
    {Quantity::kDq});

}  // namespace
}  // namespace attest
