// Property batch_size: a batch element run alone gives the bits it has inside the batch. At most four elements are tried:
// the first two, the middle one and the last.
#include <fmt/format.h>

#include <set>

#include "harness/slice.h"
#include "properties/support.h"

namespace attest {
namespace {

Verdict batch_size(Trial& trial) {
  const Inputs& in = trial.inputs();
  const int64_t batch = in.problem.batch;
  if (batch < 2) return vacuous("the batch has one element");
  std::vector<Part> parts;
  for (int64_t b : std::set<int64_t>{0, 1, batch / 2, batch - 1})
    parts.push_back({.what = fmt::format("batch element {} run alone", b), .inputs = slice_batch(in, b, 1), .batch = {b}});
  return equal_bits(trial, parts);
}

const RegisterPair registered({
    .name = "batch_size",
    .law = "A batch element run alone gives the same bits as inside the batch.",
    .domain = {.batch = {.lo = 2}},
    .faulty = "faulty.softmax.split_by_batch",
    .check = batch_size,
});

}  // namespace
}  // namespace attest
