// Runs parts of a case and compares their bits with a region of the whole's: what every invariance comes down to.
#include <fmt/format.h>

#include <cmath>

#include "harness/error.h"
#include "properties/support.h"

namespace attest {
namespace {

bool has_queries(Quantity q) { return q != Quantity::kDk && q != Quantity::kDv; }

/// The rows of the part's own output that are compared.
at::Tensor compared_rows(const Part& part, Quantity q, const at::Tensor& t) {
  return has_queries(q) && part.queries >= 0 && t.dim() > 2 ? t.narrow(2, 0, std::min(part.queries, t.size(2))) : t;
}

/// The region of the whole's output that the part's must equal.
at::Tensor region(const Part& part, Quantity q, const at::Tensor& whole) {
  at::Tensor t = part.batch.empty() ? whole : whole.index_select(0, at::tensor(part.batch, at::kLong));
  if (!has_queries(q)) return part.keys >= 0 ? t.narrow(2, part.key_begin, part.keys) : t;
  const int64_t rows = part.queries >= 0 ? part.queries : part.inputs.problem.seqlen_q;
  return t.narrow(2, part.query_begin, rows);
}

/// dk or dv [B, Hkv, Skv, *] with the rows of `keys` (bool [B, Skv]) set to +0.
at::Tensor without_keys(Quantity q, const at::Tensor& t, const at::Tensor& keys) {
  if (!keys.defined() || has_queries(q)) return t;
  return t.masked_fill(keys.unsqueeze(1).unsqueeze(-1), 0.0);
}

/// `t`, shaped as the whole, with +0 in what the part leaves out.
at::Tensor without_left_out(const Part& part, Quantity q, const at::Tensor& t) {
  if (!part.left_out) return t;
  const Sequence& s = *part.left_out;
  const int64_t heads = has_queries(q) ? part.inputs.problem.group() : 1;
  at::Tensor copy = t.clone();
  copy.narrow(0, s.batch, 1)
      .narrow(1, part.left_out_head * heads, heads)
      .narrow(2, has_queries(q) ? s.q_begin : s.kv_begin, has_queries(q) ? s.n_q : s.n_kv)
      .zero_();
  return copy;
}

void move_to_whole(const Part& part, Quantity q, std::vector<int64_t>& index) {
  if (index.empty()) return;
  if (!part.batch.empty()) index[0] = part.batch[static_cast<size_t>(index[0])];
  index[2] += has_queries(q) ? part.query_begin : part.key_begin;
}

/// «out[1,0,3,5] 0x3f80 vs 0x3f7f»
std::string difference_text(const Comparison& c) {
  if (c.index.empty()) return fmt::format("{} {}", c.quantity, c.sentence);
  const std::string bits = fmt::format("{}{} {} vs {}", c.quantity, index_text(c.index), bits_text(c.actual_bits, c.bits_width),
                                       bits_text(c.expected_bits, c.bits_width));
  const bool nan = std::isnan(c.actual) || std::isnan(c.expected);
  return fmt::format("{}{} ({} of {} elements)", bits, nan ? ", NaN" : "", c.failing, c.elements);
}

/// The comparisons of one quantity over all parts: counts added, the first failing one kept.
struct Judgement {
  std::vector<Comparison> comparisons;
  std::string sentence;

  void add(const Part& part, Comparison c) {
    if (c.outcome == Comparison::Outcome::kFail && sentence.empty())
      sentence = fmt::format("{} differs: {}", part.what, difference_text(c));
    for (Comparison& kept : comparisons)
      if (kept.quantity == c.quantity) return merge(kept, std::move(c));
    comparisons.push_back(std::move(c));
  }

  static void merge(Comparison& kept, Comparison c) {
    const int64_t elements = kept.elements + c.elements, failing = kept.failing + c.failing;
    if (c.outcome == Comparison::Outcome::kFail && kept.outcome != Comparison::Outcome::kFail) kept = std::move(c);
    kept.elements = elements;
    kept.failing = failing;
  }
};

Comparison compare_part(const Part& part, Quantity q, const Outputs& actual, const Outputs& whole, const BitRules& rules) {
  Comparison c;
  if (!actual[q].defined() || !whole[q].defined()) {
    c.sentence = "was not returned";
  } else {
    const auto compared = [&](const at::Tensor& t) {
      return without_left_out(part, q, without_keys(q, t, rules.blind_keys)).contiguous();
    };
    c = compare_bitwise(compared(compared_rows(part, q, actual[q])), compared(region(part, q, whole[q])), rules.nan_may_equal);
    move_to_whole(part, q, c.index);
  }
  c.quantity = quantity_name(part.inputs.problem.op, q);
  return c;
}

Outputs run_part(Trial& trial, const Part& part) {
  try {
    return snapshot(trial.run(sufficient(trial, part.inputs)));
  } catch (const LaunchError& e) {
    throw LaunchError(fmt::format("{}: {}", part.what, e.what()));
  }
}

}  // namespace

Verdict equal_bits(Trial& trial, const std::vector<Part>& parts, const BitRules& rules) {
  if (trial.quantities().empty()) return vacuous("no output that this law judges");
  if (parts.empty()) return vacuous("the case has no part to run apart");
  const Outputs whole = snapshot(trial.outputs());
  Judgement judgement;
  std::string refused;
  for (const Part& part : parts) {
    if (auto reason = unsupported_reason(trial.variant(), part.inputs)) {
      refused = fmt::format("{}: {}", part.what, *reason);
      continue;
    }
    const Outputs actual = run_part(trial, part);
    for (Quantity q : trial.quantities().members()) judgement.add(part, compare_part(part, q, actual, whole, rules));
  }
  if (!judgement.sentence.empty()) return incorrect(judgement.sentence, std::move(judgement.comparisons));
  if (judgement.comparisons.empty()) return {.status = Status::kUnsupported, .sentence = refused};
  return pass(std::move(judgement.comparisons));
}

}  // namespace attest
