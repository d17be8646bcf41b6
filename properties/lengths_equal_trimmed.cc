// Property lengths_equal_trimmed: a batch element that uses a part of its buffers has the bits of that part alone, whatever the
// capacity. What lies past a length, NaN included, changes no bit. Elements without a query or a key are other laws' matter.
#include "properties/support.h"

namespace attest {
namespace {

Verdict lengths_equal_trimmed(Trial& trial) {
  std::vector<Part> parts = each_alone(trial.inputs());
  for (Part& part : refilled_outside(trial, trial.inputs())) parts.push_back(std::move(part));
  return equal_bits(trial, parts);
}

const RegisterPair registered({
    .name = "lengths_equal_trimmed",
    .law = "A batch element with lengths gives the bits of its buffers trimmed to them, whatever lies past the lengths.",
    .domain = {.sequences = {Sequences::kLengths}},
    .faulty = "faulty.softmax.position_from_capacity",
    .check = lengths_equal_trimmed,
});

}  // namespace
}  // namespace attest
