// A small audit of the certified tiers, and that it sees defects. The full one is attest audit.
#include "oracles/audit/audit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "oracles/audit/broken_lanes.h"
#include "oracles/group_data.h"

namespace attest {
namespace {

AuditPlan small_plan(std::vector<AuditTier> tiers) {
  AuditPlan plan;
  plan.elements = 240'000;
  plan.seed = 3;
  plan.sizes = {.longest_row = 1024, .head_dim = 32};
  plan.tiers = std::move(tiers);
  return plan;
}

bool cpu_has_lanes() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

AuditTier tier_of(const char* name, const certified::Lanes& lanes, certified::Tier tier) {
  return {name, tier == certified::Tier::kDoubleDouble,
          [&lanes, tier](const GroupProblem& p, GroupReference& r) { certified::evaluate_with(lanes, tier, p, r, 1); }};
}

int64_t violations(const AuditResult& result, Regime regime, const char* tier) {
  int64_t count = 0;
  for (const auto& [key, cell] : result.cells)
    if (key.regime == regime && key.tier == tier) count += cell.violations;
  return count;
}

TEST(Audit, every_true_value_lies_within_the_radius_of_both_tiers) {
  if (!cpu_has_lanes()) GTEST_SKIP() << "this CPU has no AVX2 or no FMA";
  const AuditResult result =
      audit(small_plan({{"double", false, [](const GroupProblem& p, GroupReference& r) { evaluate_double(p, r, 1); }},
                        {"double-double", true,
                         [](const GroupProblem& p, GroupReference& r) { evaluate_double_double(p, r, 1); }},
                        {"balls", true, [](const GroupProblem& p, GroupReference& r) { evaluate_balls(p, r, 128); }}}));
  EXPECT_GE(result.elements, 240'000);
  EXPECT_EQ(result.cells.size(), 2U * 3U * 10U * 5U);  // operators, tiers, regimes, quantities
  for (const AuditFinding& f : result.findings)
    ADD_FAILURE() << f.miss.tier << " " << name_of(f.miss.quantity) << "[" << f.miss.element << "]: error " << f.miss.error
                  << ", radius " << f.miss.radius << ": " << f.inputs;
}

TEST(Audit, a_defect_of_tier_1_is_seen) {
  if (!cpu_has_lanes()) GTEST_SKIP() << "this CPU has no AVX2 or no FMA";
  using certified::Tier;
  const AuditResult result = audit(small_plan({tier_of("compensation", lanes_without_compensation(), Tier::kDoubleDouble),
                                               tier_of("contraction", lanes_with_contraction(), Tier::kDoubleDouble),
                                               tier_of("bound", lanes_with_half_a_bound(), Tier::kDoubleDouble)}));
  EXPECT_GT(violations(result, Regime::kNormal, "compensation"), 0);
  EXPECT_GT(violations(result, Regime::kNormal, "contraction"), 0);
  EXPECT_GT(violations(result, Regime::kThreshold, "bound"), 0);
}

TEST(Audit, one_value_off_by_one_bit_is_seen) {
  const AuditResult result = audit(small_plan({{"balls", true, [](const GroupProblem& p, GroupReference& r) {
    evaluate_balls(p, r, 256);
    GroupQuantity& out = r.of[0];
    double& low = out.lo[out.elements / 2];
    if (out.radius[out.elements / 2] > 0) low += 4 * out.radius[out.elements / 2];
  }}}));
  EXPECT_GE(static_cast<int64_t>(result.findings.size()), result.cases / 2);
  for (const AuditFinding& f : result.findings) EXPECT_EQ(f.miss.quantity, Quantity::kOut) << f.inputs;
}

TEST(Audit, the_result_is_the_same_for_any_number_of_threads) {
  AuditPlan plan = small_plan({{"balls", false, [](const GroupProblem& p, GroupReference& r) { evaluate_balls(p, r, 64); }}});
  plan.elements = 50'000;
  const AuditResult one = audit(plan);
  plan.jobs = 3;
  const AuditResult three = audit(plan);
  EXPECT_EQ(one.elements, three.elements);
  ASSERT_EQ(one.cells.size(), three.cells.size());
  for (const auto& [key, cell] : one.cells) {
    const AuditCell& other = three.cells.at(key);
    EXPECT_EQ(cell.elements, other.elements);
    EXPECT_EQ(cell.worst_ulps, other.worst_ulps);
    EXPECT_EQ(cell.pessimism_octaves, other.pessimism_octaves);
  }
}

TEST(Audit, cases_are_valid_and_a_function_of_the_seed) {
  const auto cases = audit_cases(1'000'000, 7, {});
  const auto again = audit_cases(1'000'000, 7, {}), others = audit_cases(1'000'000, 8, {});
  ASSERT_EQ(cases.size(), again.size());
  int64_t elements = 0;
  for (size_t n = 0; n < cases.size(); ++n) {
    EXPECT_EQ(cases[n].inputs, again[n].inputs);
    const GroupData data = group_data(cases[n].inputs);  // throws where the case is invalid
    for (const auto* x : {&data.q, &data.k, &data.v, &data.dout, &data.dlse})
      EXPECT_TRUE(std::ranges::none_of(*x, [](double value) { return std::isinf(value); })) << cases[n].inputs;
    elements += elements_of(cases[n].inputs.problem);
  }
  EXPECT_GE(elements, 1'000'000);
  EXPECT_NE(cases.front().inputs, others.front().inputs);
  EXPECT_TRUE(std::ranges::any_of(cases, [](const AuditCase& c) { return c.inputs.problem.seqlen_kv == 65536; }));
}

TEST(AuditCell, the_median_is_the_octave_of_the_middle_one) {
  AuditCell cell;
  for (const double ratio : {1.5, 9.0, 9.5, 1e300, 100.0}) cell.add_pessimism(ratio);
  EXPECT_EQ(cell.median_pessimism(), 8);
  EXPECT_EQ(cell.most_pessimism, 1e300);
  AuditCell more;
  for (int n = 0; n < 9; ++n) more.add_pessimism(70);
  more.merge(cell);
  EXPECT_EQ(more.median_pessimism(), 64);
}

}  // namespace
}  // namespace attest
