// Property gradients_at_saturation: a gradient that is surely there is there. Where the true value stands clear of twice
// the contract's bound, the kernel's must be non-zero and point the same way. Unusual: it judges signs alone, so that it
// also binds variants whose accuracy contract is loose.
#include <fmt/format.h>

#include "harness/float_format.h"
#include "properties/support.h"

namespace attest {
namespace {

/// float64, on the CPU: +1 or −1 where the gradient is surely there, else 0.
at::Tensor sure_signs(Trial& trial, Quantity q, at::ScalarType type) {
  const ToleranceContract& contract = trial.variant().contract;
  const Tolerance& tolerance = contract.of(q);
  const ReferenceQuantity& reference = trial.reference()[q];
  const bool relative = tolerance.mode == Tolerance::Mode::kTimesBaseline;
  const at::Tensor allowed = allowed_error(reference, tolerance, error_units(contract.arithmetic, trial.inputs().problem), type,
                                           relative ? trial.baseline()[q] : at::Tensor());
  const at::Tensor least = reference.value.abs() - reference.radius;
  const at::Tensor clear = least.gt(allowed * 2.0 + 0.5 * float_format(dtype_of(type)).smallest_subnormal());
  return reference.value.sign() * clear.to(at::kDouble);
}

std::string wrong_sign_text(Trial& trial, Quantity q, const at::Tensor& actual, const at::Tensor& wrong) {
  const double expected = trial.reference()[q].value.masked_select(wrong).select(0, 0).item<double>();
  return fmt::format("{}, yet the true gradient is surely {}: {:.9g} ({} of {} elements)",
                     element_text(quantity_name(trial.inputs().problem.op, q), actual, *first_true(wrong)),
                     expected > 0 ? "positive" : "negative", expected, wrong.count_nonzero().item<int64_t>(), wrong.numel());
}

Verdict gradients_at_saturation(Trial& trial) {
  int64_t sure = 0;
  for (Quantity q : trial.quantities().members()) {
    const at::Tensor actual = trial.outputs()[q].to(at::kCPU);
    const at::Tensor signs = sure_signs(trial, q, actual.scalar_type());
    const at::Tensor wrong = signs.ne(0).logical_and(actual.to(at::kDouble).sign().ne(signs));
    if (wrong.any().item<bool>()) return incorrect(wrong_sign_text(trial, q, actual, wrong));
    sure += signs.count_nonzero().item<int64_t>();
  }
  return sure > 0 ? pass() : vacuous("no true gradient stands clear of twice its bound");
}

const Register<Property> registered({
    .name = "gradients_at_saturation",
    .law = "Where the true gradient is larger than twice the contract's bound plus half the least subnormal, the kernel's is "
           "non-zero and has its sign.",
    .domain = {.logits = {LogitFill::kSaturated, LogitFill::kEqual, LogitFill::kCancelling, LogitFill::kOneHot,
                          LogitFill::kNegative}},
    .judges = kGradients,
    .faulty = "faulty.stickbreaking.one_minus_beta",
    .check = gradients_at_saturation,
});

}  // namespace
}  // namespace attest
