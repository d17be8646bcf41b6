// Property batch_chunking: micro-batches give the bits of the batch. The cut is uneven where the batch allows it.
#include <fmt/format.h>

#include "harness/slice.h"
#include "properties/support.h"

namespace attest {
namespace {

Part chunk(const Inputs& in, int64_t begin, int64_t count) {
  Part part{.what = fmt::format("the batch chunk [{}, {})", begin, begin + count), .inputs = slice_batch(in, begin, count)};
  for (int64_t b = begin; b < begin + count; ++b) part.batch.push_back(b);
  return part;
}

Verdict batch_chunking(Trial& trial) {
  const Inputs& in = trial.inputs();
  const int64_t batch = in.problem.batch;
  if (batch < 2) return vacuous("the batch has one element");
  const int64_t cut = (batch + 2) / 3;
  return equal_bits(trial, {chunk(in, 0, cut), chunk(in, cut, batch - cut)});
}

const RegisterPair registered({
    .name = "batch_chunking",
    .law = "A batch cut in two chunks gives the same bits as the whole batch.",
    .domain = {.batch = {.lo = 2}},
    .faulty = "faulty.softmax.split_by_batch",
    .check = batch_chunking,
});

}  // namespace
}  // namespace attest
