// Property kv_cache: keys and values that lie in a larger cache, whose tail holds NaN, or that were put together from
// pieces, give the bits of keys and values that lie alone. Only variants that take padded rows are given a cache.
#include <fmt/format.h>

#include "harness/slice.h"
#include "properties/support.h"

namespace attest {
namespace {

at::Tensor from_pieces(const at::Tensor& t, int64_t cut) {
  return at::cat({t.narrow(2, 0, cut), t.narrow(2, cut, t.size(2) - cut)}, 2);
}

Inputs concatenated(const Inputs& in) {
  Inputs other = contiguous(in);
  const int64_t cut = (in.problem.seqlen_kv + 2) / 3;
  other.k = from_pieces(in.k, cut);
  other.v = from_pieces(in.v, cut);
  return other;
}

Verdict kv_cache(Trial& trial) {
  const Inputs& in = trial.inputs();
  std::vector<Part> parts{{.what = "keys and values put together from two pieces", .inputs = concatenated(in)}};
  if (trial.variant().domain.layouts.contains(Layout::kPadded))
    for (int64_t capacity : {in.problem.seqlen_kv + 1, 2 * in.problem.seqlen_kv + 3})
      parts.push_back({.what = fmt::format("keys and values in a cache of capacity {}", capacity),
                       .inputs = in_cache(in, capacity)});
  return equal_bits(trial, parts);
}

const RegisterPair registered({
    .name = "kv_cache",
    .law = "Keys and values in a larger cache, or put together from pieces, give the same bits.",
    .faulty = "faulty.softmax.capacity_strides",
    .check = kv_cache,
});

}  // namespace
}  // namespace attest
