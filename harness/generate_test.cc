#include "harness/generate.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "harness/error.h"
#include "harness/materialise.h"
#include "harness/tensors.h"

namespace attest {
namespace {

const CaseDomain kOracle{.max_work = 1 << 18};

std::vector<Case> many(const CaseDomain& domain, int n = 1000, uint64_t seed = 1) {
  std::vector<Case> cases;
  for (int i = 0; i < n; ++i) cases.push_back(generate(seed, static_cast<uint64_t>(i), domain));
  return cases;
}

/// How many of the cases hold it, in per cent.
int percent(const std::vector<Case>& cases, const std::function<bool(const Case&)>& holds) {
  return static_cast<int>(100 * std::ranges::count_if(cases, holds) / static_cast<int64_t>(cases.size()));
}

template <class E>
EnumSet<E> any_subset() {
  EnumSet<E> set{static_cast<E>(*rc::gen::inRange<size_t>(0, enum_size<E>()))};
  for (E e : EnumSet<E>::all().members())
    if (*rc::gen::inRange(0, 2) == 0) set = set | EnumSet<E>{e};
  return set;
}

Range any_range(int64_t most) {
  const auto lo = *rc::gen::inRange<int64_t>(1, most);
  return {lo, *rc::gen::elementOf(std::vector<int64_t>{lo, lo + 1, lo + 40, std::numeric_limits<int64_t>::max()})};
}

CaseDomain any_domain() {
  auto some = [](int64_t most) { return *rc::gen::inRange(0, 3) == 0 ? any_range(most) : Range{}; };
  CaseDomain d{any_subset<Op>(), any_subset<Dtype>(), some(5),  some(9), some(4), some(5),
               some(70),         some(130),           some(40), some(40)};
  d.head_dim_multiple = *rc::gen::elementOf(std::vector<int64_t>{1, 1, 8, 16});
  d.equal_head_dims = *rc::gen::arbitrary<bool>();
  d.square_if_causal = *rc::gen::arbitrary<bool>();
  d.queries_within_keys = *rc::gen::arbitrary<bool>();
  d.causal = any_subset<bool>();
  d.attend_current = any_subset<bool>();
  d.padding = any_subset<KeyPadding>();
  d.poison = any_subset<bool>();
  d.dlse = any_subset<bool>();
  d.negative_or_zero_scale = any_subset<bool>();
  d.logits = any_subset<LogitFill>();
  d.values = any_subset<ValueFill>();
  d.layouts = any_subset<Layout>();
  d.max_work = *rc::gen::elementOf(std::vector<int64_t>{1 << 10, 1 << 14, 1 << 18, std::numeric_limits<int64_t>::max()});
  return d;
}

RC_GTEST_PROP(Generate, every_case_is_valid_and_inside_its_domain, ()) {
  const CaseDomain domain = any_domain();
  if (domain.empty_reason()) {
    RC_ASSERT_THROWS_AS(generate(1, 1, domain), UsageError);
    return;
  }
  const Case c = generate(*rc::gen::arbitrary<uint64_t>(), *rc::gen::arbitrary<uint64_t>(), domain);
  RC_LOG(to_string(c));
  RC_ASSERT(c.invalid_reason() == std::nullopt);
  RC_ASSERT(domain.excludes(c) == std::nullopt);
  RC_ASSERT(parse_case(to_string(c)) == c);
}

RC_GTEST_PROP(Shrink, candidates_are_valid_inside_the_domain_and_simpler, ()) {
  const CaseDomain domain = any_domain();
  if (domain.empty_reason()) return;
  const Case c = generate(1, *rc::gen::arbitrary<uint64_t>(), domain);
  for (const Case& smaller : shrink_candidates(c, domain)) {
    RC_ASSERT(smaller.invalid_reason() == std::nullopt);
    RC_ASSERT(domain.excludes(smaller) == std::nullopt);
    RC_ASSERT(complexity(smaller) < complexity(c));
    RC_ASSERT(smaller.problem.op == c.problem.op && smaller.problem.dtype == c.problem.dtype && smaller.seed == c.seed);
  }
}

TEST(Generate, a_case_is_a_function_of_seed_index_and_domain) {
  EXPECT_EQ(many(kOracle), many(kOracle));
  EXPECT_NE(many(kOracle, 9, 1), many(kOracle, 9, 2));
  std::set<std::string> texts;
  for (const Case& c : many(kOracle)) texts.insert(to_string(c));
  EXPECT_EQ(texts.size(), 1000U);
}

TEST(Generate, the_cases_are_the_same_on_every_machine) {
  uint64_t hash = 0;
  for (const Case& c : many(kOracle)) hash = hash * 31 + hash_of(c);
  EXPECT_EQ(hash, 15245881997117492390U) << generate(1, 0, kOracle);
}

TEST(Generate, every_enumerator_is_drawn) {
  std::set<int> seen;
  for (const Case& c : many(kOracle)) {
    const AttentionProblem& p = c.problem;
    const int values[] = {int(p.op),     int(p.dtype),  int(p.causal), int(p.attend_current), int(c.padding),
                          int(c.poison), int(c.logits), int(c.values), int(c.dlse),           int(c.layout)};
    for (int field = 0; field < 10; ++field) seen.insert(100 * field + values[field]);
  }
  EXPECT_EQ(seen.size(), 2U + 3 + 2 + 2 + 6 + 2 + 7 + 6 + 2 + 6);
}

TEST(Generate, shapes_that_break_kernels_are_frequent) {
  const auto cases = many(kOracle);
  EXPECT_GE(percent(cases, [](const Case& c) { return c.problem.seqlen_q == 1 && c.problem.seqlen_kv > 1; }), 5);
  EXPECT_GE(percent(cases, [](const Case& c) { return c.problem.causal && c.problem.seqlen_q > c.problem.seqlen_kv; }), 5);
  EXPECT_GE(percent(cases, [](const Case& c) { return c.problem.seqlen_q == c.problem.seqlen_kv; }), 5);
  EXPECT_GE(percent(cases, [](const Case& c) { return c.problem.seqlen_kv >= 127; }), 15);
  EXPECT_GE(percent(cases, [](const Case& c) { return c.problem.seqlen_kv > 256; }), 3);
  EXPECT_GE(percent(cases, [](const Case& c) { return c.problem.group() > 1 && c.problem.group() != c.problem.num_heads_kv; }),
            8);
  EXPECT_GE(percent(cases, [](const Case& c) { return c.problem.batch > 1; }), 20);
  EXPECT_GE(percent(cases, [](const Case& c) { return c.problem.head_dim >= 64; }), 15);
  EXPECT_GE(percent(cases, [](const Case& c) { return c.problem.head_dim != c.problem.head_dim_v; }), 10);
  EXPECT_GE(percent(cases, [](const Case& c) { return c.problem.head_dim % 8 != 0; }), 10);
  EXPECT_GE(percent(cases, [](const Case& c) { return c.problem.softmax_scale == 0; }), 2);
  EXPECT_GE(percent(cases, [](const Case& c) { return c.problem.softmax_scale < 0; }), 5);
  EXPECT_GE(percent(cases, [](const Case& c) { return c.layout == Layout::kExpanded; }), 2);
  EXPECT_GE(percent(cases, [](const Case& c) { return c.layout == Layout::kPackedQkv; }), 2);
}

TEST(Generate, the_typical_case_is_cheap) {
  std::vector<int64_t> work;
  for (const Case& c : many(kOracle)) work.push_back(c.problem.work());
  std::ranges::sort(work);
  EXPECT_GE(work[500], 1 << 13);
  EXPECT_LE(work[500], 1 << 15);
  EXPECT_GE(work[950], 1 << 16);
}

/// Walks to the first candidate that still fails, until none does.
Case shrunk(Case c, const CaseDomain& domain, const std::function<bool(const AttentionProblem&)>& fails) {
  for (bool moved = true; moved;) {
    moved = false;
    for (const Case& smaller : shrink_candidates(c, domain)) {
      if (!fails(smaller.problem)) continue;
      EXPECT_LT(complexity(smaller), complexity(c));
      c = smaller;
      moved = true;
      break;
    }
  }
  return c;
}

/// `words` say what the minimum must be where it differs from the plainest case.
void expect_minimum(const CaseDomain& domain, const std::string& words,
                    const std::function<bool(const AttentionProblem&)>& fails) {
  int tried = 0;
  for (const Case& c : many(domain, 600)) {
    if (!fails(c.problem)) continue;
    ++tried;
    Case expected = parse_case("D=1 " + words);
    expected.seed = c.seed;
    expected.problem.op = c.problem.op;
    expected.problem.dtype = c.problem.dtype;
    expected.problem.causal = expected.problem.causal || c.problem.op == Op::kStickBreaking;
    EXPECT_EQ(shrunk(c, domain, fails), expected) << "from " << c;
  }
  EXPECT_GE(tried, 5) << words;
}

TEST(Shrink, ends_at_the_smallest_failing_case) {
  expect_minimum(kOracle, "", [](const AttentionProblem&) { return true; });
  expect_minimum(kOracle, "Skv=17", [](const AttentionProblem& p) { return p.seqlen_kv >= 17; });
  expect_minimum(kOracle, "B=2", [](const AttentionProblem& p) { return p.batch >= 2; });
  expect_minimum(kOracle, "Hq=4 Hkv=2", [](const AttentionProblem& p) { return p.num_heads_kv >= 2 && p.group() >= 2; });
  expect_minimum(kOracle, "Sq=3 Skv=3", [](const AttentionProblem& p) { return p.seqlen_q >= 3 && p.seqlen_q == p.seqlen_kv; });
  expect_minimum(kOracle, "Sq=3 Skv=1", [](const AttentionProblem& p) { return p.seqlen_q >= p.seqlen_kv + 2; });
  expect_minimum(kOracle, "D=9 Dv=1", [](const AttentionProblem& p) { return p.head_dim > 8; });
}

TEST(Shrink, ends_at_the_smallest_case_of_its_domain) {
  const CaseDomain domain{.ops = {Op::kSoftmax},
                          .seqlen_q = {3, 99},
                          .head_dim_multiple = 8,
                          .equal_head_dims = true,
                          .square_if_causal = true,
                          .causal = {true}};
  expect_minimum(domain, "Sq=3 Skv=3 D=8 causal", [](const AttentionProblem&) { return true; });
  expect_minimum(domain, "Sq=18 Skv=18 D=16 causal",
                 [](const AttentionProblem& p) { return p.seqlen_kv > 17 && p.head_dim > 8; });
}

TEST(Shrink, the_first_candidate_is_the_plainest_case_and_the_case_itself_none) {
  const Case c = parse_case(
      "B=2 Hq=6 Hkv=2 Sq=33 Skv=65 D=64 causal scale=3 padding=left poison logits=saturated(88) "
      "values=one-hot dlse layout=padded seed=3");
  const auto candidates = shrink_candidates(c, {});
  EXPECT_EQ(candidates.front(), parse_case("D=1 seed=3"));
  EXPECT_EQ(std::ranges::count(candidates, c), 0);
  EXPECT_TRUE(shrink_candidates(parse_case("D=1 seed=3"), {}).empty());
}

TEST(Generate, saturated_cases_reach_their_magnitude) {
  for (const Case& c : many({.logits = {LogitFill::kSaturated, LogitFill::kNegative}, .max_work = 1 << 12}, 200)) {
    const Inputs in = materialise(c);
    const AttentionProblem& p = c.problem;
    if (c.poison) continue;  // logits of hidden keys are not finite
    const at::Tensor k = in.k.to(at::kDouble).repeat_interleave(p.group(), 1).transpose(2, 3);
    const at::Tensor z = (p.softmax_scale * at::matmul(in.q.to(at::kDouble), k)).abs() / c.magnitude;
    EXPECT_GT(z.min().item<double>(), 0.2) << c;
    EXPECT_LT(z.max().item<double>(), 3) << c;
  }
}

}  // namespace
}  // namespace attest
