// The independent witness: every tier of the certified oracles against the plain definition in 192 bits, on generated cases.
#include <gtest/gtest.h>

#include <cmath>

#include "harness/generate.h"
#include "harness/materialise.h"
#include "harness/oracle.h"
#include "harness/reference.h"
#include "harness/tensors.h"

namespace attest {
namespace {

const Oracle& oracle(Op op, const char* name) {
  return *Registry<Oracle>::instance().find(std::string(name_of(op)) + "." + name);
}

/// Two enclosures of one number have a point in common; what is infinite is the same.
void expect_brackets_meet(const ReferenceQuantity& a, const ReferenceQuantity& b, const std::string& what) {
  const at::Tensor finite = b.value.isfinite();
  EXPECT_TRUE(a.value.masked_select(finite.logical_not()).equal(b.value.masked_select(finite.logical_not()))) << what;
  at::Tensor difference = a.value - b.value;  // exact: the two are neighbours or nearly so
  if (a.low.defined()) difference = difference + a.low;
  // b's value is rounded to double within its radius; a sum of two doubles loses at most a spacing of the larger.
  const at::Tensor allowed = a.radius + b.radius + b.value.abs() * 0x1p-105;
  const at::Tensor excess = (difference.abs() - allowed).masked_fill(finite.logical_not(), 0);
  EXPECT_LE(excess.max().item<double>(), 0) << what;
}

/// `radius` is that of the values which a's terms were summed from.
void expect_terms_agree(const ReferenceQuantity& a, const at::Tensor& radius, const ReferenceQuantity& b, const std::string& what) {
  // Terms are sums over computed values, so that they are off by what those are; a stick below 2^-800 is taken for 0.
  const at::Tensor tolerance = b.terms.abs() * 1e-9 + 4 * radius.unsqueeze(0) + 0x1p-700;
  EXPECT_LE(((a.terms - b.terms).abs() - tolerance).nan_to_num(0).max().item<double>(), 0) << what;
}

class Witness : public ::testing::TestWithParam<Op> {};

TEST_P(Witness, agrees_with_every_tier_on_generated_cases) {
  const Oracle& certified = oracle(GetParam(), "certified");
  CaseDomain domain{.ops = {GetParam()}, .max_work = 1 << 13};
  for (uint64_t index = 0; index < 150; ++index) {
    const Case c = generate(17, index, domain);
    const Inputs in = materialise(c);
    const Reference truth = oracle(GetParam(), "definition").evaluate(in, 0);
    Reference summed;  // what gave the terms: balls give none of their own
    for (size_t tier = 0; tier < (index % 5 == 0 ? certified.tiers.size() : 2); ++tier) {
      const Reference r = certified.evaluate(in, tier);
      if (tier < 2) summed = r;
      for (const Quantity q : EnumSet<Quantity>::all().members()) {
        ASSERT_EQ(r[q].value.defined(), truth[q].value.defined());
        if (!r[q].value.defined()) continue;
        const std::string what = std::string(name_of(q)) + " of " + certified.tiers[tier] + ": " + to_string(c);
        expect_brackets_meet(r[q], truth[q], what);
        expect_terms_agree(r[q], summed[q].radius, truth[q], what);
      }
    }
    if (HasFailure()) return;
  }
}

TEST_P(Witness, sees_narrower_radii_with_each_tier) {
  const Oracle& certified = oracle(GetParam(), "certified");
  const Inputs in = materialise(generate(17, 3, {.ops = {GetParam()}, .logits = {LogitFill::kNormal}, .max_work = 1 << 13}));
  double before = INFINITY;
  for (size_t tier = 0; tier < std::min<size_t>(3, certified.tiers.size()); ++tier) {
    const double widest = certified.evaluate(in, tier)[Quantity::kOut].radius.max().item<double>();
    EXPECT_LT(widest, before) << certified.tiers[tier];
    before = widest;
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, Witness, ::testing::Values(Op::kSoftmax, Op::kStickBreaking),
                         [](const auto& info) { return std::string(name_of(info.param)); });

}  // namespace
}  // namespace attest
