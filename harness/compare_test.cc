#include "harness/compare.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "harness/error.h"
#include "harness/float_format.h"
#include "harness/reference.h"

namespace attest {
namespace {

using Outcome = Comparison::Outcome;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr Dtype kDtypes[] = {Dtype::kFloat16, Dtype::kBFloat16, Dtype::kFloat32};
const ErrorUnits kUnits{0x1p-20, 0, 0, 0, 0x1p-24, 0, 0, 0};

/// A reference whose terms of kDotQk and kUnit are 1, and whose other terms are infinite (their units above are 0).
ReferenceQuantity reference_of(std::vector<double> values, double radius = 0.0, double trivial = 1e30) {
  const auto n = static_cast<int64_t>(values.size());
  ReferenceQuantity r;
  r.value = at::tensor(values, at::kDouble);
  r.radius = at::full({n}, radius, at::kDouble);
  r.trivial = at::full({n}, trivial, at::kDouble);
  r.terms = at::full({static_cast<int64_t>(enum_size<ErrorSource>()), n}, kInf, at::kDouble);
  r.terms[0].fill_(1.0);
  r.terms[4].fill_(1.0);
  return r;
}

at::Tensor output_of(const std::vector<double>& values, Dtype dtype = Dtype::kFloat32) {
  return at::tensor(values, at::kDouble).to(scalar_type(dtype));
}

Comparison compare_one(double actual, double expected, const Tolerance& t, double radius = 0.0, Dtype dtype = Dtype::kFloat32) {
  return compare(output_of({actual}, dtype), reference_of({expected}, radius), t, kUnits);
}

TEST(Compare, accepts_an_error_equal_to_the_bound_and_not_the_next_larger_one) {
  const float bound = 0x1p-10F, beyond = std::nextafter(1.0F + bound, 2.0F);
  EXPECT_EQ(compare_one(1.0 + bound, 1.0, elementwise(bound, 0)).outcome, Outcome::kPass);
  EXPECT_EQ(compare_one(beyond, 1.0, elementwise(bound, 0)).outcome, Outcome::kFail);
}

RC_GTEST_PROP(Compare, one_bound_away_passes_and_just_beyond_fails_in_every_mode, ()) {
  const Dtype dtype = *rc::gen::elementOf(std::vector<Dtype>(std::begin(kDtypes), std::end(kDtypes)));
  const double expected = round_to(*rc::gen::inRange(-1000, 1000) / 7.0, dtype);
  const int n = *rc::gen::inRange(1, 9);
  const double spacing = ulp(expected, 1e30, dtype);
  const double actual = round_to(expected + (expected < 0 ? -n : n) * spacing, dtype);
  const double error = std::fabs(actual - expected);
  for (const Tolerance& t : {elementwise(error, 0), ulps(error / ulp(expected, actual, dtype))})
    RC_ASSERT(compare_one(actual, expected, t, 0, dtype).outcome == Outcome::kPass);
  const double less = std::nextafter(error, 0);
  for (const Tolerance& t : {elementwise(less, 0), ulps(std::nextafter(error / ulp(expected, actual, dtype), 0))})
    RC_ASSERT(compare_one(actual, expected, t, 0, dtype).outcome == Outcome::kFail);
}

RC_GTEST_PROP(Compare, is_symmetric_in_sign, ()) {
  const double actual = *rc::gen::inRange(-64, 64) / 8.0, expected = *rc::gen::inRange(-64, 64) / 8.0;
  for (const Tolerance& t : {elementwise(1.0, 0.125), ulps(0x1p21), forward_error(0x1p20)}) {
    const Comparison c = compare_one(actual, expected, t), m = compare_one(-actual, -expected, t);
    RC_ASSERT(c.outcome == m.outcome && c.error == m.error && c.headroom == m.headroom && c.bound == m.bound);
  }
}

TEST(Compare, never_accepts_nan_or_a_stray_infinity_however_wide_the_bound) {
  for (Dtype dtype : kDtypes)
    for (const Tolerance& t : {forward_error(1e300), forward_error(kInf), elementwise(kInf, 0), ulps(1e300), bitwise()})
      for (double actual : {kNaN, kInf, -kInf})
        for (double radius : {0.0, 100.0}) {
          const Comparison c = compare(output_of({0.0, actual}, dtype), reference_of({0.0, 1.0}, radius), t, kUnits);
          EXPECT_EQ(c.outcome, Outcome::kFail) << to_string(t) << " " << actual;
          EXPECT_EQ(c.index, std::vector<int64_t>{1});
        }
}

TEST(Compare, accepts_an_infinity_that_the_reference_has_too_and_no_other) {
  EXPECT_EQ(compare_one(-kInf, -kInf, forward_error(2)).outcome, Outcome::kPass);
  for (double actual : {kInf, kNaN, 0.0, -3e38})
    EXPECT_EQ(compare_one(actual, -kInf, forward_error(2)).outcome, Outcome::kFail) << actual;
}

TEST(Compare, accepts_the_infinity_that_a_value_in_contract_rounds_to) {
  EXPECT_EQ(compare_one(kInf, 70000.0, ulps(1), 0, Dtype::kFloat16).outcome, Outcome::kPass);
  EXPECT_EQ(compare_one(kInf, 65500.0, ulps(1), 0, Dtype::kFloat16).outcome, Outcome::kPass);
  EXPECT_EQ(compare_one(kInf, 65400.0, ulps(1), 0, Dtype::kFloat16).outcome, Outcome::kFail);
  EXPECT_EQ(compare_one(-kInf, 70000.0, ulps(1), 0, Dtype::kFloat16).outcome, Outcome::kFail);
}

TEST(Compare, is_undecided_exactly_while_the_radius_straddles_the_bound) {
  const Tolerance t = elementwise(1.0, 0.0);
  EXPECT_EQ(compare_one(0.75, 0.0, t, 0.25).outcome, Outcome::kPass);
  EXPECT_EQ(compare_one(0.75, 0.0, t, 0.375).outcome, Outcome::kUndecided);
  EXPECT_EQ(compare_one(1.25, 0.0, t, 0.25).outcome, Outcome::kUndecided);
  EXPECT_EQ(compare_one(1.25, 0.0, t, 0.125).outcome, Outcome::kFail);
}

TEST(Compare, the_low_part_of_the_reference_decides_where_the_high_part_cannot) {
  ReferenceQuantity r = reference_of({1.0});
  const double spacing = 0x1p-52;
  r.low = at::full({1}, -spacing / 4, at::kDouble);
  const auto outcome = [&](double atol) { return compare(output_of({0.5}), r, elementwise(atol, 0), kUnits).outcome; };
  EXPECT_EQ(outcome(0.5), Outcome::kPass);
  EXPECT_EQ(outcome(0.5 - spacing / 8), Outcome::kPass);
  EXPECT_EQ(outcome(0.5 - spacing / 2), Outcome::kFail);
  r.low.neg_();
  EXPECT_EQ(outcome(0.5), Outcome::kFail);
  r.radius.fill_(spacing / 4);
  EXPECT_EQ(outcome(0.5), Outcome::kUndecided);
}

TEST(Compare, a_sum_of_error_and_radius_that_rounding_hides_is_still_too_large) {
  const Tolerance t = elementwise(1.0, 0.0);
  EXPECT_EQ(compare_one(1.0, 0.0, t, 0.0).outcome, Outcome::kPass);
  EXPECT_EQ(compare_one(1.0, 0.0, t, 0x1p-80).outcome, Outcome::kUndecided);
}

TEST(Compare, bits_are_undecided_only_where_the_bracket_rounds_to_two_numbers) {
  ReferenceQuantity r = reference_of({1.0 + 0x1p-24});  // a tie of fp32
  const auto outcome = [&](double actual) { return compare(output_of({actual}), r, bitwise(), kUnits).outcome; };
  EXPECT_EQ(outcome(1.0), Outcome::kPass);
  r.low = at::full({1}, 0x1p-80, at::kDouble);
  EXPECT_EQ(outcome(1.0), Outcome::kUndecided);  // high + low is rounded outwards: from the tie to a double beyond it
  r.radius.fill_(0x1p-40);
  EXPECT_EQ(outcome(1.0), Outcome::kUndecided);
  EXPECT_EQ(outcome(1.0 + 0x1p-22), Outcome::kFail);
}

TEST(Compare, an_infinity_is_undecided_while_the_radius_reaches_the_last_binade) {
  EXPECT_EQ(compare_one(kInf, 1.0, ulps(1), kInf).outcome, Outcome::kUndecided);
  EXPECT_EQ(compare_one(kInf, 1.0, ulps(1), 1e30).outcome, Outcome::kFail);
  EXPECT_EQ(compare_one(kNaN, 1.0, ulps(1), kInf).outcome, Outcome::kFail);
}

TEST(Compare, forward_error_is_c_times_the_sum_of_units_and_terms_and_output_rounding) {
  const double bound = 0x1p-20 + 0x1p-24 + 4.0 * 0x1p-24 + 0x1p-150;
  EXPECT_DOUBLE_EQ(compare_one(4.0, 4.0, forward_error(1)).bound, bound);
  EXPECT_DOUBLE_EQ(compare_one(4.0, 4.0, forward_error(3)).bound, 3 * bound);
  EXPECT_DOUBLE_EQ(compare_one(4.0, 4.0, forward_error(1), 0, Dtype::kFloat16).bound, 0x1p-20 + 0x1p-24 + 4 * 0x1p-11 + 0x1p-25);
}

TEST(Compare, counts_vacuous_elements_and_still_fails_what_no_value_in_contract_reaches) {
  const at::Tensor trivial = at::full({2}, 1e-7, at::kDouble);
  ReferenceQuantity r = reference_of({0.0, 0.0});
  r.trivial = trivial;
  const Comparison within = compare(output_of({1e-6, 0.0}), r, forward_error(1), kUnits);
  EXPECT_EQ(within.outcome, Outcome::kPass);
  EXPECT_EQ(within.vacuous, 2);
  EXPECT_LE(within.headroom, 1.0);
  const Comparison beyond = compare(output_of({2e-6, 0.0}), r, forward_error(1), kUnits);
  EXPECT_EQ(beyond.outcome, Outcome::kFail);
  EXPECT_EQ(beyond.failing, 1);
}

TEST(Compare, names_the_element_with_the_largest_headroom_first_of_equals_on_a_pass_too) {
  const Comparison pass = compare(output_of({1.25, 2.5, 8.5, 0.0}), reference_of({1, 2, 8, 0}), elementwise(1, 0), kUnits);
  EXPECT_EQ(pass.outcome, Outcome::kPass);
  EXPECT_EQ(pass.index, std::vector<int64_t>{1});
  EXPECT_EQ(pass.error, 0.5);
  EXPECT_EQ(pass.headroom, 0.5);
  EXPECT_EQ(pass.elements, 4);
}

TEST(Compare, names_a_failing_element_rather_than_an_undecided_one) {
  ReferenceQuantity r = reference_of({0, 0});
  r.radius[0] = 100.0;
  const Comparison c = compare(output_of({50, 2}), r, elementwise(1, 0), kUnits);
  EXPECT_EQ(c.outcome, Outcome::kFail);
  EXPECT_EQ(c.index, std::vector<int64_t>{1});
  EXPECT_EQ(c.failing, 1);
}

TEST(Compare, fails_when_there_is_nothing_to_compare_or_shapes_or_dtypes_differ) {
  const ReferenceQuantity r = reference_of({1, 2});
  const at::Tensor two = output_of({1, 2});
  for (const at::Tensor& actual : {at::Tensor(), output_of({1}), two.reshape({2, 1}), two.to(at::kDouble)}) {
    const Comparison c = compare(actual, r, elementwise(1, 0), kUnits);
    EXPECT_EQ(c.outcome, Outcome::kFail);
    EXPECT_FALSE(c.sentence.empty());
  }
  EXPECT_EQ(compare(at::empty({0}), reference_of({}), elementwise(1, 0), kUnits).outcome, Outcome::kFail);
}

TEST(Compare, holds_a_kernel_to_n_times_the_worst_error_of_the_baseline) {
  const ReferenceQuantity r = reference_of({1, 1});
  const at::Tensor baseline = output_of({1, 1.125});
  EXPECT_EQ(compare(output_of({1.25, 1}), r, times_baseline(2), kUnits, &baseline).outcome, Outcome::kPass);
  EXPECT_EQ(compare(output_of({1.2501, 1}), r, times_baseline(2), kUnits, &baseline).outcome, Outcome::kFail);
  EXPECT_THROW(compare(output_of({1, 1}), r, times_baseline(2), kUnits), Error);
}

TEST(Compare, decides_nothing_by_a_baseline_that_is_not_finite) {
  const at::Tensor baseline = output_of({kNaN});
  EXPECT_EQ(compare(output_of({1}), reference_of({1}), times_baseline(2), kUnits, &baseline).outcome, Outcome::kUndecided);
  EXPECT_EQ(compare(output_of({kNaN}), reference_of({1}), times_baseline(2), kUnits, &baseline).outcome, Outcome::kFail);
}

TEST(Compare, bitwise_takes_the_correctly_rounded_reference_alone) {
  EXPECT_EQ(compare_one(1.0, 1.0 + 0x1p-30, bitwise()).outcome, Outcome::kPass);
  EXPECT_EQ(compare_one(1.0 + 0x1p-23, 1.0 + 0x1p-30, bitwise()).outcome, Outcome::kFail);
  EXPECT_EQ(compare_one(-0.0, 0.0, bitwise()).outcome, Outcome::kFail);
  EXPECT_EQ(compare_one(1.0, 1.0 + 0x1p-24, bitwise(), 0x1p-40).outcome, Outcome::kUndecided);
}

TEST(Compare, does_not_depend_on_strides) {
  const at::Tensor actual = at::arange(12, at::kFloat).reshape({3, 4}).t();
  ReferenceQuantity r = reference_of(std::vector<double>(12, 0.0));
  r.value = actual.to(at::kDouble).contiguous();
  r.radius = at::zeros({4, 3}, at::kDouble);
  r.trivial = at::ones({4, 3}, at::kDouble);
  const Comparison c = compare(actual, r, elementwise(0, 0), kUnits);
  EXPECT_EQ(c.outcome, Outcome::kPass);
  EXPECT_EQ(c.headroom, 0.0);
}

TEST(Compare, throws_when_the_reference_itself_is_nan) {
  EXPECT_THROW(compare_one(1.0, kNaN, elementwise(1, 0)), Error);
}

}  // namespace
}  // namespace attest
