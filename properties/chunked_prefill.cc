// Property chunked_prefill: queries cut in two chunks, each with the keys a server would have cached by then (all of them
// when not causal), give the bits of one prefill; with key padding too. dk and dv are sums over queries, of which each
// chunk has only some: they are not judged.
#include <fmt/format.h>

#include "harness/slice.h"
#include "properties/support.h"

namespace attest {
namespace {

Verdict chunked_prefill(Trial& trial) {
  const Inputs& in = trial.inputs();
  const AttentionProblem& p = in.problem;
  if (p.seqlen_q < 2) return vacuous("there is one query");
  const int64_t cut = (p.seqlen_q + 2) / 3;
  std::vector<Part> parts;
  for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, cut}, {cut, p.seqlen_q}}) {
    if (p.causal && p.position(end - 1) < 0) continue;  // no key is cached yet
    parts.push_back({.what = fmt::format("the chunk of queries [{}, {})", begin, end),
                     .inputs = slice_queries(in, begin, end - begin),
                     .query_begin = begin});
  }
  return equal_bits(trial, parts);
}

const RegisterPair registered(
    {
        .name = "chunked_prefill",
        .law = "Queries cut in two chunks, each with the keys it may see, give the bits of one prefill (out, lse or rem, dq).",
        .domain = {.seqlen_q = {.lo = 2}},
        .faulty = "faulty.softmax.chunk_splits",
        .check = chunked_prefill,
    },
    {Quantity::kDq});

}  // namespace
}  // namespace attest
