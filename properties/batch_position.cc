// Property batch_position: where an element stands in the batch, and who stands beside it, changes none of its bits. The
// batch size stays, so that this law repeats nothing of batch_size.
#include <numeric>

#include "harness/slice.h"
#include "properties/support.h"

namespace attest {
namespace {

Verdict batch_position(Trial& trial) {
  const Inputs& in = trial.inputs();
  const int64_t batch = in.problem.batch;
  if (batch < 2) return vacuous("the batch has one element");
  std::vector<int64_t> same(static_cast<size_t>(batch));
  std::iota(same.begin(), same.end(), 0);
  const std::vector<int64_t> reversed(same.rbegin(), same.rend());
  std::vector<int64_t> twice = same;
  twice.front() = batch - 1;
  return equal_bits(trial, {{.what = "the batch in reversed order", .inputs = gather_batch(in, reversed), .batch = reversed},
                            {.what = "the batch with its last element in the first one's place too",
                             .inputs = gather_batch(in, twice),
                             .batch = twice}});
}

const RegisterPair registered({
    .name = "batch_position",
    .law = "The order of the batch, and an element standing in it twice, changes no element's bits.",
    .domain = {.batch = {.lo = 2}},
    .faulty = "faulty.softmax.position_seeded",
    .check = batch_position,
});

}  // namespace
}  // namespace attest
