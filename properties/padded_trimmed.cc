// Property padded_trimmed: padding that is masked and padding that is not there come to the same, within contract. Each
// batch element is run without the padded keys at its right end; bits may differ (fewer leaves, shorter sums), so the two
// outputs may lie as far apart as their two bounds allow. Under a causal mask positions count from the last key, so the
// queries are run in two groups: those before the padding, with the same mask; those that see every kept key, without one
// (stick-breaking, always causal: the last query, with attend_current). dk and dv are sums over queries: they are judged
// where one group holds all of them.
#include <fmt/format.h>

#include <algorithm>

#include "harness/slice.h"
#include "properties/support.h"

namespace attest {
namespace {

/// Queries [query_begin, …) of one batch element, without the keys at the right end that its mask hides.
struct Trimmed {
  int64_t element = 0, query_begin = 0;
  Inputs inputs;
};

int64_t kept_length(const at::Tensor& padded_row) {
  int64_t n = padded_row.size(0);
  while (n > 0 && padded_row[n - 1].item<bool>()) --n;
  return n;
}

/// The queries that see every one of the first `keys` keys, and more positions than these; `alone` is causal. Cut as if it
/// were not, since under a causal mask every query would keep its distance to the last key.
Trimmed past_the_padding(Inputs alone, int64_t b, int64_t keys) {
  const AttentionProblem& p = alone.problem;
  const bool stick = p.op == Op::kStickBreaking;
  const int64_t begin = stick ? p.seqlen_q - 1 : std::max<int64_t>(0, keys - 1 - p.position(0));
  alone.problem.causal = false;
  Trimmed trimmed{b, begin, first_keys(slice_queries(alone, begin, p.seqlen_q - begin), keys)};
  trimmed.inputs.problem.causal = trimmed.inputs.problem.attend_current = stick;
  return trimmed;
}

/// Whatever can be run of batch element b; nothing when no key can be left out, or all would be.
std::vector<Trimmed> trim(const Inputs& in, const at::Tensor& padded, int64_t b) {
  const AttentionProblem& p = in.problem;
  const int64_t keys = kept_length(padded[b]);
  if (keys == 0 || keys == p.seqlen_kv) return {};
  const Inputs alone = slice_batch(in, b, 1);
  std::vector<Trimmed> parts;
  if (!p.causal) parts.push_back({b, 0, first_keys(alone, keys)});
  if (p.causal) parts.push_back(past_the_padding(alone, b, keys));
  const int64_t before = p.seqlen_q - (p.seqlen_kv - keys);
  if (p.causal && before > 0) parts.push_back({b, 0, slice_queries(alone, 0, before)});
  for (Trimmed& t : parts)
    if (t.inputs.key_padding_mask.all().item<bool>()) t.inputs.key_padding_mask = at::Tensor();
  return parts;
}

/// What `t`, shaped as the whole's quantity after `lead` more dimensions, holds for the trimmed part.
at::Tensor part_of(const Trimmed& trimmed, Quantity q, const at::Tensor& t, int64_t lead = 0) {
  const AttentionProblem& p = trimmed.inputs.problem;
  const at::Tensor element = t.narrow(lead, trimmed.element, 1);
  if (sums_over_queries(q)) return element.narrow(lead + 2, 0, p.seqlen_kv).contiguous();
  return element.narrow(lead + 2, trimmed.query_begin, p.seqlen_q).contiguous();
}

ReferenceQuantity part_of(const Trimmed& trimmed, Quantity q, const ReferenceQuantity& r) {
  return {.value = part_of(trimmed, q, r.value),
          .radius = part_of(trimmed, q, r.radius),
          .terms = part_of(trimmed, q, r.terms, 1),
          .trivial = part_of(trimmed, q, r.trivial),
          .low = r.low.defined() ? part_of(trimmed, q, r.low) : r.low};
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
  expected.low = at::Tensor();
  expected.radius = at::zeros_like(expected.value);
  return compare(actual, expected, doubled(tolerance), units);
}

void compare_trimmed(Trial& trial, const Trimmed& trimmed, const Outputs& whole, std::vector<Comparison>& comparisons) {
  const AttentionProblem& p = trimmed.inputs.problem;
  const Outputs actual = snapshot(trial.run(sufficient(trial, trimmed.inputs)));
  for (Quantity q : trial.quantities().members()) {
    if (sums_over_queries(q) && p.seqlen_q < trial.inputs().problem.seqlen_q) continue;
    Comparison c = compare_quantity(trial, trimmed, q, actual[q], whole[q]);
    c.quantity = quantity_name(p.op, q);
    if (!c.index.empty()) c.index[0] = trimmed.element;
    if (!c.index.empty() && !sums_over_queries(q)) c.index[2] += trimmed.query_begin;
    comparisons.push_back(std::move(c));
  }
}

Verdict padded_trimmed(Trial& trial) {
  const at::Tensor padded = padded_keys(trial.inputs());
  if (!padded.defined()) return vacuous("no key is padded");
  const Outputs whole = snapshot(trial.outputs());
  std::vector<Comparison> comparisons;
  std::string refused;
  for (int64_t b = 0; b < padded.size(0); ++b)
    for (const Trimmed& trimmed : trim(trial.inputs(), padded, b)) {
      const auto reason = unsupported_reason(trial.variant(), trimmed.inputs);
      if (reason) refused = fmt::format("batch element {} without its padded keys: {}", b, *reason);
      if (!reason) compare_trimmed(trial, trimmed, whole, comparisons);
    }
  if (!comparisons.empty()) return judge(std::move(comparisons), "a batch element run without the padded keys at its end");
  if (!refused.empty()) return {.status = Status::kUnsupported, .sentence = refused};
  return vacuous("no padded keys at the right end that can be left out");
}

const RegisterPair registered({
    .name = "padded_trimmed",
    .law = "Keys padded at the right end, masked or left out, give outputs no further apart than the sum of their two bounds.",
    .domain = {.padding = {KeyPadding::kRight, KeyPadding::kSome}},
    .faulty = "faulty.softmax.counts_padding",
    .check = padded_trimmed,
});

}  // namespace
}  // namespace attest
