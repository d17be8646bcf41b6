// Property hidden_keys_have_zero_gradient: what is not looked at gets no gradient. dk and dv of the keys that no query
// sees (padded, or beyond every query) and dq of the queries that see no key are exactly 0, of either sign.
#include <fmt/format.h>

#include "properties/support.h"

namespace attest {
namespace {

std::optional<std::string> fault(Op op, Quantity q, const at::Tensor& t, const Blind& unseen) {
  const bool of_query = q == Quantity::kDq;
  const at::Tensor hidden = (of_query ? unseen.queries : unseen.keys).unsqueeze(1).unsqueeze(-1);
  const auto at = first_true(hidden.logical_and(t.ne(0)));
  if (!at) return std::nullopt;
  return fmt::format("{} {} of batch element {} {}, yet {}", of_query ? "query" : "key", (*at)[2], (*at)[0],
                     of_query ? "sees no key" : "is seen by no query", element_text(quantity_name(op, q), t, *at));
}

Verdict hidden_keys_have_zero_gradient(Trial& trial) {
  if (trial.quantities().empty()) return vacuous("no output that this law judges");
  const Blind unseen = blind(trial.inputs());
  if (!unseen.keys.any().item<bool>() && !unseen.queries.any().item<bool>()) return vacuous("every key is seen by a query");
  for (Quantity q : trial.quantities().members())
    if (auto sentence = fault(trial.inputs().problem.op, q, trial.outputs()[q].to(at::kCPU), unseen)) return incorrect(*sentence);
  return pass();
}

const Register<Property> registered({
    .name = "hidden_keys_have_zero_gradient",
    .law = "dk and dv of keys that no query sees, and dq of queries that see no key, are exactly 0, of either sign.",
    .domain = {.sequences = EnumSet<Sequences>::all()},
    .judges = kGradients,
    .faulty = "faulty.softmax.padded_key_gradient",
    .check = hidden_keys_have_zero_gradient,
});

}  // namespace
}  // namespace attest
