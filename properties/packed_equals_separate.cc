// Property packed_equals_separate: sequences packed one after another keep the bits that each has alone. What rows after the
// last sequence hold, NaN included, changes no bit either. Sequences without a query or without a key are other laws' matter.
#include "properties/support.h"

namespace attest {
namespace {

Verdict packed_equals_separate(Trial& trial) {
  std::vector<Part> parts = each_alone(trial.inputs());
  for (Part& part : refilled_outside(trial, trial.inputs())) parts.push_back(std::move(part));
  return equal_bits(trial, parts);
}

const RegisterPair registered({
    .name = "packed_equals_separate",
    .law = "A packed sequence run alone, as a whole batch of one, gives the same bits as among the others.",
    .domain = {.sequences = {Sequences::kPacked}},
    .faulty = "faulty.softmax.boundary_off_by_one",
    .check = packed_equals_separate,
});

}  // namespace
}  // namespace attest
