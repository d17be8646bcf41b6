// Property equals_host_twin: a deterministic kernel whose reduction contract is written down gives the bits of the plain CPU
// program that follows it, the operator's cpu.fixed_order. Where they differ, the contract is incomplete or one of the two is
// wrong. Only for variants that promise it: others have no twin.
#include "properties/support.h"

namespace attest {
namespace {

Verdict equals_host_twin(Trial& trial) {
  const KernelVariant& variant = trial.variant();
  const bool promised = variant.promises.contains("equals_host_twin.forward") || variant.promises.contains("equals_host_twin.gradients");
  if (!promised) return {.status = Status::kUnsupported, .sentence = "the variant has no host twin"};
  std::vector<Comparison> comparisons;
  for (Quantity q : trial.quantities().members()) {
    comparisons.push_back(compare_bitwise(trial.outputs()[q].cpu(), trial.baseline()[q]));
    comparisons.back().quantity = quantity_name(trial.inputs().problem.op, q);
  }
  return judge(std::move(comparisons), "the host twin");
}

const RegisterPair registered({
    .name = "equals_host_twin",
    .law = "The kernel and the CPU program that follows its reduction contract give the same bits.",
    .faulty = "faulty.softmax.no_twin",
    .check = equals_host_twin,
});

}  // namespace
}  // namespace attest
