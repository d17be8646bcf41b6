// Property agrees_with_oracle: accuracy, under the contract of the variant's own record. Forward and gradients are judged
// apart, since a variant may be trusted with one and not with the other.
#include "properties/support.h"

namespace attest {
namespace {

Comparison compare_quantity(Trial& trial, Quantity q) {
  const AttentionProblem& problem = trial.inputs().problem;
  const ToleranceContract& contract = trial.variant().contract;
  const Tolerance& tolerance = contract.of(q);
  const bool relative = tolerance.mode == Tolerance::Mode::kTimesBaseline;
  const at::Tensor* baseline = relative ? &trial.baseline()[q] : nullptr;
  const ErrorUnits units = error_units(contract.arithmetic, longest(trial.inputs()));
  Comparison c = compare(trial.outputs()[q], trial.reference()[q], tolerance, units, baseline);
  c.quantity = quantity_name(problem.op, q);
  return c;
}

Verdict agrees_with_oracle(Trial& trial) {
  if (trial.quantities().empty()) return vacuous("no output that this law judges");
  std::vector<Comparison> comparisons;
  for (Quantity q : trial.quantities().members()) comparisons.push_back(compare_quantity(trial, q));
  return judge(std::move(comparisons), "against " + trial.reference().oracle);
}

Property record(const char* name, EnumSet<Quantity> judges, const char* faulty) {
  return {
      .name = name,
      .law = "Each output differs from the true value, which an oracle brackets, by no more than the variant's contract allows.",
      .domain = {.sequences = EnumSet<Sequences>::all()},
      .judges = judges,
      .faulty = faulty,
      .check = agrees_with_oracle,
  };
}

const Register<Property> forward(record("agrees_with_oracle.forward", kForward, "faulty.softmax.top_left_causal"));
const Register<Property> gradients(record("agrees_with_oracle.gradients", kGradients, "faulty.stickbreaking.drops_drem"));

}  // namespace
}  // namespace attest
