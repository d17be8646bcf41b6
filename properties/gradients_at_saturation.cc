// Property gradients_at_saturation: a gradient that is surely there is there. Where the true value stands clear of twice
// the contract's bound, the kernel's must be non-zero and point the same way. Unusual: it judges signs alone, so that it
// also binds variants whose accuracy contract is loose.
#include <fmt/format.h>

#include "harness/float_format.h"
#include "properties/support.h"

namespace attest {
namespace {

/// bool, on the CPU: where the true gradient is surely there, and where the reference's radius leaves that open.
struct Clear {
  at::Tensor surely, maybe;
  at::Tensor sign;  // of the true gradient: −1, 0, 1, or 2 where the radius leaves it open
};

Clear clear_of_twice_the_bound(Trial& trial, Quantity q, at::ScalarType type) {
  const ToleranceContract& contract = trial.variant().contract;
  const Tolerance& tolerance = contract.of(q);
  const ReferenceQuantity& r = trial.reference()[q];
  const bool relative = tolerance.mode == Tolerance::Mode::kTimesBaseline;
  const at::Tensor allowed = allowed_error(r, tolerance, error_units(contract.arithmetic, longest(trial.inputs())), type,
                                           relative ? trial.baseline()[q] : at::Tensor());
  const at::Tensor threshold = allowed * 2.0 + 0.5 * float_format(dtype_of(type)).smallest_subnormal();
  const at::Tensor size = r.value.abs();
  at::Tensor margin = r.radius + size * 0x1p-52;  // the latter for the rounding of these sums
  if (r.low.defined()) margin = margin + r.low.abs();
  const at::Tensor surely = (size - margin).gt(threshold);
  const at::Tensor sign = r.value.sign().masked_fill(size.le(margin), 2);
  return {surely, (size + margin).gt(threshold).logical_and(surely.logical_not()), sign};
}

std::string wrong_sign_text(Trial& trial, Quantity q, const at::Tensor& actual, const at::Tensor& wrong) {
  const double expected = trial.reference()[q].value.masked_select(wrong).select(0, 0).item<double>();
  return fmt::format("{}, yet the true gradient is surely {}: {:.9g} ({} of {} elements)",
                     element_text(quantity_name(trial.inputs().problem.op, q), actual, *first_true(wrong)),
                     expected > 0 ? "positive" : "negative", expected, wrong.count_nonzero().item<int64_t>(), wrong.numel());
}

Verdict gradients_at_saturation(Trial& trial) {
  int64_t sure = 0;
  std::optional<Verdict> undecided;
  for (Quantity q : trial.quantities().members()) {
    const at::Tensor actual = trial.outputs()[q].to(at::kCPU);
    const Clear clear = clear_of_twice_the_bound(trial, q, actual.scalar_type());
    const at::Tensor differs = actual.to(at::kDouble).sign().ne(clear.sign);
    const at::Tensor wrong = clear.surely.logical_and(differs), open = clear.maybe.logical_and(differs);
    if (wrong.any().item<bool>()) return incorrect(wrong_sign_text(trial, q, actual, wrong));
    if (open.any().item<bool>() && !undecided)
      undecided = {Status::kUndecided,
                   element_text(quantity_name(trial.inputs().problem.op, q), actual, *first_true(open)) +
                       ": the reference is not known well enough to say that the true gradient stands clear of its bound",
                   {}};
    sure += clear.surely.count_nonzero().item<int64_t>();
  }
  if (undecided) return *undecided;
  return sure > 0 ? pass() : vacuous("no true gradient stands clear of twice its bound");
}

const Register<Property> registered({
    .name = "gradients_at_saturation",
    .law = "Where the true gradient is larger than twice the contract's bound plus half the least subnormal, the kernel's is "
           "non-zero and has its sign.",
    .domain = {.sequences = EnumSet<Sequences>::all(),
               .logits = {LogitFill::kSaturated, LogitFill::kEqual, LogitFill::kCancelling, LogitFill::kOneHot,
                          LogitFill::kNegative}},
    .judges = kGradients,
    .faulty = "faulty.stickbreaking.one_minus_beta",
    .check = gradients_at_saturation,
});

}  // namespace
}  // namespace attest
