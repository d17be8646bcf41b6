// Property padded_trimmed: padding that is masked and padding that is not there come to the same, within contract. Each
// batch element is run without the padded keys at its right end; bits may differ (fewer leaves, shorter sums), so the two
// outputs may lie as far apart as their two bounds allow. Under a causal mask positions count from the last key, so as
// many queries are dropped from the end as keys, and dk and dv, sums over all queries, are not judged.
#include <fmt/format.h>

#include "harness/slice.h"
#include "properties/support.h"

namespace attest {
namespace {

/// One batch element without the `keys..Skv` that its mask hides.
struct Trimmed {
  int64_t element = 0;
  Inputs inputs;
};

int64_t kept_length(const at::Tensor& padded_row) {
  int64_t n = padded_row.size(0);
  while (n > 0 && padded_row[n - 1].item<bool>()) --n;
  return n;
}

std::optional<Trimmed> trim(const Inputs& in, const at::Tensor& padded, int64_t b) {
  const AttentionProblem& p = in.problem;
  const int64_t keys = kept_length(padded[b]);
  const int64_t queries = p.causal ? p.seqlen_q - (p.seqlen_kv - keys) : p.seqlen_q;
  if (keys == 0 || keys == p.seqlen_kv || queries < 1) return std::nullopt;
  const Inputs alone = slice_batch(in, b, 1);
  Trimmed t{b, p.causal ? slice_queries(alone, 0, queries) : first_keys(alone, keys)};
  if (t.inputs.key_padding_mask.all().item<bool>()) t.inputs.key_padding_mask = at::Tensor();
  return t;
}

bool sums_over_queries(Quantity q) { return q == Quantity::kDk || q == Quantity::kDv; }

/// What `t`, shaped as the whole's quantity after `lead` more dimensions, holds for the trimmed element.
at::Tensor part_of(const Trimmed& trimmed, Quantity q, const at::Tensor& t, int64_t lead = 0) {
  const AttentionProblem& p = trimmed.inputs.problem;
  const int64_t rows = sums_over_queries(q) ? p.seqlen_kv : p.seqlen_q;
  return t.narrow(lead, trimmed.element, 1).narrow(lead + 2, 0, rows).contiguous();
}

ReferenceQuantity part_of(const Trimmed& trimmed, Quantity q, const ReferenceQuantity& r) {
  return {.value = part_of(trimmed, q, r.value),
          .radius = part_of(trimmed, q, r.radius),
          .terms = part_of(trimmed, q, r.terms, 1),
          .trivial = part_of(trimmed, q, r.trivial)};
}

Tolerance doubled(Tolerance t) {
  t.c *= 2, t.atol *= 2, t.rtol *= 2;
  return t;
}

Comparison compare_quantity(Trial& trial, const Trimmed& trimmed, Quantity q, const at::Tensor& actual, const at::Tensor& whole) {
  const ToleranceContract& contract = trial.variant().contract;
  const Tolerance& tolerance = contract.of(q);
  const ErrorUnits units = error_units(contract.arithmetic, trial.inputs().problem);
  const bool nan = whole.isnan().any().item<bool>();  // no value to compare with
  if (tolerance.mode == Tolerance::Mode::kBitwise || nan) return compare_bitwise(actual, part_of(trimmed, q, whole));
  ReferenceQuantity expected = part_of(trimmed, q, trial.reference()[q]);
  if (tolerance.mode == Tolerance::Mode::kTimesBaseline) {  // a distance to the truth: no sum of two is promised
    const at::Tensor baseline = part_of(trimmed, q, trial.baseline()[q]);
    return compare(actual, expected, tolerance, units, &baseline);
  }
  expected.value = part_of(trimmed, q, whole).to(at::kDouble);
  expected.radius = at::zeros_like(expected.value);
  return compare(actual, expected, doubled(tolerance), units);
}

void compare_trimmed(Trial& trial, const Trimmed& trimmed, const Outputs& whole, std::vector<Comparison>& comparisons) {
  const Outputs actual = snapshot(trial.run(sufficient(trial, trimmed.inputs)));
  for (Quantity q : trial.quantities().members()) {
    if (trimmed.inputs.problem.causal && sums_over_queries(q)) continue;
    Comparison c = compare_quantity(trial, trimmed, q, actual[q], whole[q]);
    c.quantity = quantity_name(trimmed.inputs.problem.op, q);
    if (!c.index.empty()) c.index[0] = trimmed.element;
    comparisons.push_back(std::move(c));
  }
}

Verdict padded_trimmed(Trial& trial) {
  const at::Tensor padded = padded_keys(trial.inputs());
  if (!padded.defined()) return vacuous("no key is padded");
  const Outputs whole = snapshot(trial.outputs());
  std::vector<Comparison> comparisons;
  std::string refused;
  for (int64_t b = 0; b < padded.size(0); ++b) {
    const auto trimmed = trim(trial.inputs(), padded, b);
    if (!trimmed) continue;
    if (auto reason = unsupported_reason(trial.variant(), trimmed->inputs)) {
      refused = fmt::format("batch element {} without its padded keys: {}", b, *reason);
      continue;
    }
    compare_trimmed(trial, *trimmed, whole, comparisons);
  }
  if (!comparisons.empty()) return judge(std::move(comparisons), "a batch element run without the padded keys at its end");
  if (!refused.empty()) return {.status = Status::kUnsupported, .sentence = refused};
  return vacuous("no padded keys at the right end that can be left out");
}

const RegisterPair registered({
    .name = "padded_trimmed",
    .law = "Keys padded at the right end, masked or left out, give outputs no further apart than the sum of their two bounds.",
    .domain = {.padding = EnumSet<KeyPadding>::all().without(KeyPadding::kNone).without(KeyPadding::kLeft)},
    .faulty = "faulty.softmax.counts_padding",
    .check = padded_trimmed,
});

}  // namespace
}  // namespace attest
