#include <algorithm>
#include <cmath>
#include <vector>

#include "harness/generate.h"
#include "harness/smallest.h"

namespace attest {
namespace {

constexpr int64_t AttentionProblem::*kSizes[] = {
    &AttentionProblem::batch,     &AttentionProblem::num_heads_q, &AttentionProblem::num_heads_kv, &AttentionProblem::seqlen_q,
    &AttentionProblem::seqlen_kv, &AttentionProblem::head_dim,    &AttentionProblem::head_dim_v};

/// From `lo` up to x − 1: lo, the middle, three quarters of the way, …; empty when x ≤ lo.
std::vector<int64_t> towards(int64_t x, int64_t lo) {
  std::vector<int64_t> steps;
  for (int64_t gap = x - lo; gap > 0; gap /= 2) steps.push_back(x - gap);
  return steps;
}

bool default_scale(const AttentionProblem& p) { return p.softmax_scale == default_softmax_scale(p.head_dim); }

template <class E>
double rank(E e) {
  return e == E{} ? 0.0 : 1.0 + static_cast<double>(e) / 16;
}

/// Collects smaller cases, each made from `from_` by an edit.
class Candidates {
 public:
  Candidates(const Case& from, const CaseDomain& domain) : from_(from), domain_(domain), least_(from.problem) {
    if (set_smallest_sizes(domain, least_)) least_ = from.problem;
  }

  std::vector<Case> run() {
    shrink_everything();
    shrink_heads();
    shrink_lengths();
    shrink_dims();
    for (int64_t b : towards(from_.problem.batch, least_.batch)) add([&](Case& c) { c.problem.batch = b; });
    shrink_fields();
    std::ranges::stable_sort(found_, {}, complexity);
    return std::move(found_);
  }

 private:
  template <class Edit>
  void add(Edit edit) {
    Case c = from_;
    edit(c);
    if (default_scale(from_.problem)) c.problem.softmax_scale = default_softmax_scale(c.problem.head_dim);
    if (c.invalid_reason() || domain_.excludes(c) || complexity(c) >= complexity(from_)) return;
    if (std::ranges::find(found_, c) == found_.end()) found_.push_back(c);
  }

  void set_smallest(Case& c) const {
    if (set_smallest_sizes(domain_, c.problem)) c.problem = from_.problem;
  }
  void set_plainest_mask(Case& c) const {
    if (c.problem.op == Op::kSoftmax) c.problem.causal = !domain_.causal.contains(false);
    if (c.problem.op == Op::kStickBreaking) c.problem.attend_current = !domain_.attend_current.contains(false);
  }
  void set_plainest_scale(Case& c) const {
    if (domain_.negative_or_zero_scale.contains(false)) c.problem.softmax_scale = default_softmax_scale(c.problem.head_dim);
  }
  void set_plainest_sequences(Case& c) const { c.sequences = domain_.sequences.members().front(); }
  /// Poison needs a place: padding, or where there is none to choose, sequences.
  void set_plainest_padding(Case& c) const {
    c.poison = !domain_.poison.contains(false);
    const bool elsewhere = c.sequences != Sequences::kWhole || domain_.padding == EnumSet<KeyPadding>{KeyPadding::kNone};
    c.padding = (c.poison && !elsewhere ? domain_.padding.without(KeyPadding::kNone) : domain_.padding).members().front();
  }
  void set_plainest_logits(Case& c) const {
    c.logits = domain_.logits.members().front();
    if (!takes_magnitude(c.logits)) c.magnitude = 0;
  }
  void set_plainest_values(Case& c) const { c.values = domain_.values.members().front(); }
  void set_plainest_dlse(Case& c) const { c.dlse = !domain_.dlse.contains(false); }
  void set_plainest_layout(Case& c) const { c.layout = domain_.layouts.members().front(); }
  void set_plainest(Case& c) const {
    set_plainest_mask(c);
    set_plainest_sequences(c);
    set_plainest_padding(c);
    set_plainest_logits(c);
    set_plainest_values(c);
    set_plainest_dlse(c);
    set_plainest_layout(c);
  }

  void shrink_everything() {
    add([this](Case& c) {
      set_plainest(c);
      set_smallest(c);
      set_plainest_scale(c);
    });
    add([this](Case& c) {
      set_plainest(c);
      set_plainest_scale(c);
    });
    add([this](Case& c) { set_smallest(c); });
  }

  /// Every pair of a smaller or equal Hkv and a smaller or equal group.
  void shrink_heads() {
    const AttentionProblem& p = from_.problem;
    auto kv_heads = towards(p.num_heads_kv, domain_.num_heads_kv.lo), groups = towards(p.group(), domain_.group.lo);
    kv_heads.push_back(p.num_heads_kv);
    groups.push_back(p.group());
    for (int64_t kv : kv_heads)
      for (int64_t group : groups)
        add([&](Case& c) {
          c.problem.num_heads_kv = kv;
          c.problem.num_heads_q = kv * group;
        });
  }

  void shrink_lengths() {
    const AttentionProblem& p = from_.problem;
    for (int64_t n : towards(p.seqlen_kv, least_.seqlen_kv)) add([&](Case& c) { c.problem.seqlen_kv = n; });
    for (int64_t n : towards(p.seqlen_q, least_.seqlen_q)) add([&](Case& c) { c.problem.seqlen_q = n; });
    // Together, so that Skv − Sq stays: needed where the domain ties them, and where the failure does.
    const int64_t most = std::min(p.seqlen_q - domain_.seqlen_q.lo, p.seqlen_kv - domain_.seqlen_kv.lo);
    for (int64_t n : towards(most, 0))
      add([&](Case& c) {
        c.problem.seqlen_q -= most - n;
        c.problem.seqlen_kv -= most - n;
      });
  }

  void shrink_dims() {
    const AttentionProblem& p = from_.problem;
    const int64_t unit = domain_.head_dim_multiple;
    for (int64_t n : towards(p.head_dim / unit, least_.head_dim / unit)) {
      add([&](Case& c) { c.problem.head_dim = n * unit; });
      if (p.head_dim == p.head_dim_v) add([&](Case& c) { c.problem.head_dim = c.problem.head_dim_v = n * unit; });
    }
    for (int64_t n : towards(p.head_dim_v / unit, least_.head_dim_v / unit))
      add([&](Case& c) { c.problem.head_dim_v = n * unit; });
  }

  void shrink_fields() {
    add([this](Case& c) { set_plainest_mask(c); });
    add([this](Case& c) { set_plainest_scale(c); });
    for (Sequences sequences : domain_.sequences.members()) add([&](Case& c) { c.sequences = sequences; });
    add([this](Case& c) { set_plainest_padding(c); });
    add([this](Case& c) { set_plainest_logits(c); });
    add([this](Case& c) { set_plainest_values(c); });
    add([this](Case& c) { set_plainest_dlse(c); });
    add([this](Case& c) { set_plainest_layout(c); });
    add([](Case& c) { c.poison = false; });
    for (KeyPadding padding : domain_.padding.members()) add([&](Case& c) { c.padding = padding; });
    for (Layout layout : domain_.layouts.members()) add([&](Case& c) { c.layout = layout; });
    if (!takes_magnitude(from_.logits)) return;
    for (float magnitude : {1.0F, 8.0F, from_.magnitude / 8, from_.magnitude / 2}) add([&](Case& c) { c.magnitude = magnitude; });
  }

  const Case& from_;
  const CaseDomain& domain_;
  AttentionProblem least_;  // the smallest sizes for this op and mask
  std::vector<Case> found_;
};

}  // namespace

std::vector<Case> shrink_candidates(const Case& c, const CaseDomain& domain) { return Candidates(c, domain).run(); }

double complexity(const Case& c) {
  const AttentionProblem& p = c.problem;
  double sum = 0;
  for (auto size : kSizes) sum += static_cast<double>(p.*size);
  if (p.op == Op::kSoftmax && p.causal) sum += 1;
  if (p.attend_current) sum += 1;
  if (!default_scale(p)) sum += 1;
  sum += rank(c.sequences) + rank(c.padding) + rank(c.logits) + rank(c.values) + rank(c.layout) + (c.poison ? 1 : 0) + (c.dlse ? 1 : 0);
  return sum + std::log2(1.0 + static_cast<double>(c.magnitude)) / 64;
}

}  // namespace attest
