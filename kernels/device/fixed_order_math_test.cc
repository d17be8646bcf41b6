#include "kernels/device/fixed_order_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace attest::fixed_order {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

/// |actual − expected| in spacings of fp32 at `expected`, never under the smallest subnormal.
double error_ulps(float actual, double expected) {
  const int exponent = std::max(std::ilogb(std::abs(expected)), -126);
  return std::abs(static_cast<double>(actual) - expected) / std::ldexp(1.0, exponent - 23);
}

template <class F, class G>
double worst_error(uint32_t first_bits, uint32_t last_bits, uint32_t step, F actual, G expected) {
  double worst = 0.0;
  for (uint64_t bits = first_bits; bits <= last_bits; bits += step) {
    const float x = float_of(static_cast<uint32_t>(bits));
    worst = std::max(worst, error_ulps(actual(x), expected(static_cast<double>(x))));
  }
  return worst;
}

TEST(FixedOrderMath, exp_is_within_one_ulp_down_to_the_smallest_subnormal) {
  const auto exact = [](double x) { return std::exp(x); };
  const double negative = worst_error(bits_of(-0.0F), bits_of(-103.9F), 509, exp, exact);
  const double positive = worst_error(bits_of(0.0F), bits_of(88.7F), 509, exp, exact);
  RecordProperty("max_ulp", std::to_string(std::max(negative, positive)));
  EXPECT_LE(std::max(negative, positive), 1.0);
}

TEST(FixedOrderMath, exp_is_exact_at_its_ends) {
  EXPECT_EQ(exp(0.0F), 1.0F);
  EXPECT_EQ(exp(-0.0F), 1.0F);
  EXPECT_EQ(bits_of(exp(-kInf)), 0U);
  EXPECT_EQ(bits_of(exp(-1e30F)), 0U);
  EXPECT_EQ(bits_of(exp(-103.98F)), 0U);
  EXPECT_EQ(bits_of(exp(-103.97F)), 1U);
  EXPECT_EQ(exp(kInf), kInf);
  EXPECT_EQ(exp(88.73F), kInf);
  EXPECT_TRUE(std::isnan(exp(std::nanf(""))));
}

TEST(FixedOrderMath, exp_never_falls) {
  float last = 0.0F;
  for (float x = -110.0F; x < 90.0F; x += 0.0009765625F) {
    ASSERT_LE(last, exp(x)) << x;
    last = exp(x);
  }
}

TEST(FixedOrderMath, log_is_within_one_ulp) {
  const double worst =
      worst_error(1, bits_of(std::numeric_limits<float>::max()), 1021, log, [](double x) { return std::log(x); });
  const double near_one =
      worst_error(bits_of(0.99F), bits_of(1.01F), 1, log, [](double x) { return x == 1.0 ? 0.0 : std::log(x); });
  RecordProperty("max_ulp", std::to_string(std::max(worst, near_one)));
  EXPECT_LE(std::max(worst, near_one), 0.83);
}

TEST(FixedOrderMath, log_is_exact_at_its_ends) {
  EXPECT_EQ(log(1.0F), 0.0F);
  EXPECT_EQ(log(0.0F), -kInf);
  EXPECT_EQ(log(-0.0F), -kInf);
  EXPECT_EQ(log(kInf), kInf);
  EXPECT_TRUE(std::isnan(log(-1.0F)));
  EXPECT_TRUE(std::isnan(log(std::nanf(""))));
}

TEST(FixedOrderMath, the_logistic_pair_keeps_its_relative_error_at_saturation) {
  for (float z = -103.0F; z <= 103.0F; z += 0.01171875F) {
    const Logistic both = logistic(z);
    ASSERT_LE(error_ulps(both.beta, 1.0 / (1.0 + std::exp(-static_cast<double>(z)))), 2.5) << z;
    ASSERT_LE(error_ulps(both.rest, 1.0 / (1.0 + std::exp(static_cast<double>(z)))), 2.5) << z;
  }
}

}  // namespace
}  // namespace attest::fixed_order
