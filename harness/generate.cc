#include "harness/generate.h"

#include <rapidcheck.h>

#include <algorithm>
#include <vector>

#include "harness/draw_sizes.h"
#include "harness/error.h"
#include "harness/one_of.h"
#include "harness/smallest.h"

namespace attest {
namespace {

bool one_in(int n) { return *rc::gen::inRange(0, n) == 0; }

/// A member of `set`; the plainest, its first, `weight` times as often as another.
template <class E>
E member_of(EnumSet<E> set, size_t weight) {
  std::vector<E> members = set.members();
  members.insert(members.begin(), weight - 1, members.front());
  return one_of(members);
}

/// Op, causal and attend_current, with the smallest sizes: those combinations of which the domain holds a case.
std::vector<AttentionProblem> masks_in(const CaseDomain& domain) {
  std::vector<AttentionProblem> masks;
  for (Op op : domain.ops.members())
    for (bool causal : domain.causal.members())
      for (bool current : domain.attend_current.members()) {
        AttentionProblem p{.op = op, .causal = causal, .attend_current = current};
        if (p.invalid_reason() || set_smallest_sizes(domain, p)) continue;
        masks.insert(masks.end(), op == Op::kSoftmax && causal ? 2 : 1, p);
      }
  return masks;
}

bool needs_logits(LogitFill fill) { return fill == LogitFill::kSaturated || fill == LogitFill::kNegative; }

float draw_scale(const CaseDomain& domain, const Case& c) {
  const EnumSet<bool> allowed = domain.negative_or_zero_scale;
  const float usual = default_softmax_scale(c.problem.head_dim);
  if (!allowed.contains(false) || (allowed.contains(true) && one_in(7)))
    return needs_logits(c.logits) || !one_in(3) ? one_of<float>({-usual, -1.0F, -0.1F}) : 0.0F;
  return one_in(3) ? one_of<float>({0.001F, 0.1F, 0.5F, 1.0F, 2.0F, 3.0F}) : usual;
}

float draw_magnitude(LogitFill fill) {
  if (fill == LogitFill::kSaturated) return one_of<float>({4, 11, 16, 30, 60, 88, 88, 300, 1e4, 6e4, 2.5e5});
  if (fill == LogitFill::kNegative) return one_of<float>({8, 8, 8, 16, 30, 100, 5.1e4, 2.5e5});
  if (fill == LogitFill::kOneHot) return one_of<float>({1, 8, 64, 300, 2048});
  return 0.0F;
}

/// Whole batches in four of five cases. Nothing is drawn where the domain holds one kind alone.
Sequences draw_sequences(const CaseDomain& domain) {
  EnumSet<Sequences> kinds = domain.sequences;
  if (!domain.poison.contains(false) && domain.padding == EnumSet<KeyPadding>{KeyPadding::kNone})
    kinds = kinds.without(Sequences::kWhole);
  if (kinds.members().size() == 1) return kinds.members().front();
  if (kinds.contains(Sequences::kWhole)) {
    if (!one_in(5)) return Sequences::kWhole;
    kinds = kinds.without(Sequences::kWhole);
  }
  return one_of(kinds.members());
}

/// Two or more sequences in three of four cases with them, where the domain holds such cases.
CaseDomain sized_for(const CaseDomain& domain, Case& c) {
  if (c.sequences == Sequences::kWhole || one_in(4)) return domain;
  CaseDomain several = domain;
  several.batch.lo = std::max<int64_t>(2, domain.batch.lo);
  AttentionProblem smallest = c.problem;
  if (several.batch.empty() || set_smallest_sizes(several, smallest)) return domain;
  c.problem = smallest;
  return several;
}

void draw_padding(const CaseDomain& domain, Case& c) {
  EnumSet<KeyPadding> padding = domain.padding;
  const bool whole = c.sequences == Sequences::kWhole;
  if (!domain.poison.contains(false) && whole) padding = padding.without(KeyPadding::kNone);
  c.padding = member_of(padding, padding.contains(KeyPadding::kNone) ? 5 : 1);
  c.poison = (c.padding != KeyPadding::kNone || !whole) && domain.poison.contains(true) && (!domain.poison.contains(false) || !one_in(2));
}

/// Layouts that come to the same as another here are left out, if any other is left; packed ones, rarely possible, come often.
Layout draw_layout(const CaseDomain& domain, const Case& c) {
  const AttentionProblem& p = c.problem;
  EnumSet<Layout> layouts = domain.layouts;
  if (p.batch == 1 || c.sequences == Sequences::kPacked) layouts = layouts.without(Layout::kExpanded);
  if (p.seqlen_q != p.seqlen_kv || p.head_dim != p.head_dim_v) layouts = layouts.without(Layout::kPackedQkv);
  if (layouts.contains(Layout::kPackedQkv) && one_in(3)) return Layout::kPackedQkv;
  return member_of(layouts.empty() ? domain.layouts : layouts, 4);
}

Case draw(const CaseDomain& domain, const std::vector<AttentionProblem>& masks) {
  Case c;
  c.problem = one_of(masks);
  c.problem.dtype = one_of(domain.dtypes.members());
  c.sequences = draw_sequences(domain);
  draw_sizes(sized_for(domain, c), c.problem);
  c.logits = member_of(domain.logits, 5);
  c.magnitude = draw_magnitude(c.logits);
  c.problem.softmax_scale = draw_scale(domain, c);
  c.values = member_of(domain.values, 5);
  draw_padding(domain, c);
  c.dlse = one_of(domain.dlse.members());
  c.layout = draw_layout(domain, c);
  c.seed = *rc::gen::inRange<uint64_t>(0, 1000000);
  return c;
}

}  // namespace

Case generate(uint64_t seed, uint64_t index, const CaseDomain& domain) {
  if (auto reason = domain.empty_reason()) throw UsageError("there is no case to generate: " + *reason);
  const std::vector<AttentionProblem> masks = masks_in(domain);
  const rc::Random random(rc::Random::Key{seed, index, 0, 0});
  return rc::gen::exec([&] { return draw(domain, masks); })(random, rc::kNominalSize).value();
}

}  // namespace attest
