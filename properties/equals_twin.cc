// Property equals_twin: two kernels of one operator that follow one reduction contract give the same bits wherever both run, e.g. one
// for a kind of GPU and its portable twin. Where they differ, the contract is incomplete or one of the two is wrong. Only for
// variants that name a twin (harness/twin.h), on inputs that the twin takes.
#include "harness/twin.h"
#include "properties/support.h"

namespace attest {
namespace {

Verdict equals_twin(Trial& trial) {
  const Twin* named = Registry<Twin>::instance().find(trial.variant().name);
  if (named == nullptr) return {.status = Status::kUnsupported, .sentence = "the variant names no twin"};
  const KernelVariant* twin = Registry<KernelVariant>::instance().find(named->of);
  if (twin == nullptr) return {.status = Status::kUnsupported, .sentence = "its twin " + named->of + " is not in this build"};
  const Inputs inputs = sufficient(trial, trial.inputs());
  if (auto reason = unsupported_reason(*twin, inputs)) return {.status = Status::kUnsupported, .sentence = named->of + ": " + *reason};
  const Outputs actual = snapshot(trial.outputs()), expected = snapshot(twin->run(inputs));
  std::vector<Comparison> comparisons;
  for (Quantity q : trial.quantities().members()) {
    comparisons.push_back(compare_bitwise(actual[q], expected[q]));
    comparisons.back().quantity = quantity_name(trial.inputs().problem.op, q);
  }
  return judge(std::move(comparisons), "its twin " + named->of);
}

const RegisterPair registered({
    .name = "equals_twin",
    .law = "A variant gives the bits of the one that it names as its twin.",
    .domain = every_case(),
    .faulty = "faulty.softmax.unlike_its_twin",
    .check = equals_twin,
});

}  // namespace
}  // namespace attest
