// Property fully_masked_rows: a query that sees no key gives out 0, lse −∞ or rem 1, dq 0, and spoils nothing else. Such
// rows come from padding of every key, from more queries than keys under a causal mask, and from the first row of
// stick-breaking without attend_current. Zeros of either sign will do.
#include <fmt/format.h>

#include <limits>

#include "properties/support.h"

namespace attest {
namespace {

double promised_value(Op op, Quantity q) {
  if (q != Quantity::kLse) return 0.0;
  return op == Op::kSoftmax ? -std::numeric_limits<double>::infinity() : 1.0;
}

/// `rows` [B, Sq] spread over t [B, Hq, Sq] or [B, Hq, Sq, *].
at::Tensor spread(const at::Tensor& rows, const at::Tensor& t) {
  const at::Tensor heads = rows.unsqueeze(1);
  return (t.dim() == 4 ? heads.unsqueeze(-1) : heads).expand_as(t);
}

std::optional<std::string> fault(Op op, Quantity q, const at::Tensor& t, const at::Tensor& rows) {
  const std::string_view name = quantity_name(op, q);
  if (auto at = first_true(t.isnan()))
    return fmt::format("{} in a case where some query sees no key", element_text(name, t, *at));
  if (q == Quantity::kDk || q == Quantity::kDv) return std::nullopt;
  const double promised = promised_value(op, q);
  if (auto at = first_true(spread(rows, t).logical_and(t.ne(promised))))
    return fmt::format("query {} of batch element {} sees no key, yet {}, not {}", (*at)[2], (*at)[0], element_text(name, t, *at),
                       promised);
  return std::nullopt;
}

Verdict fully_masked_rows(Trial& trial) {
  const at::Tensor rows = blind(trial.inputs()).queries;
  if (!rows.any().item<bool>()) return vacuous("every query sees a key");
  for (Quantity q : trial.quantities().members())
    if (auto sentence = fault(trial.inputs().problem.op, q, trial.outputs()[q].to(at::kCPU), rows)) return incorrect(*sentence);
  return pass();
}

Property record(const char* name, EnumSet<Quantity> judges, const char* faulty) {
  return {
      .name = name,
      .law = "A query that sees no key gives out 0, lse −∞ (softmax) or rem 1 (stick-breaking), dq 0, and nothing is NaN.",
      .domain = {.sequences = EnumSet<Sequences>::all()},
      .judges = judges,
      .faulty = faulty,
      .check = fully_masked_rows,
  };
}

const Register<Property> forward(record("fully_masked_rows.forward", kForward, "faulty.softmax.nan_on_masked_rows"));
const Register<Property> gradients(
    record("fully_masked_rows.gradients", kGradients, "faulty.softmax.nan_gradient_on_masked_rows"));

}  // namespace
}  // namespace attest
