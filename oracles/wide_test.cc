#include "oracles/wide.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace attest {
namespace {

double relative_difference(const Wide& actual, const Wide& expected) {
  return std::fabs(static_cast<double>((actual - expected) / expected));
}

TEST(Wide, exp_is_that_of_the_library) {
  for (const double x : {0.0, -1e-30, -1e-3, -0.3, -0.5, -1.0, -17.25, -60.0, -745.0, -1e4, -1e6})
    EXPECT_LE(relative_difference(exp_nonpositive(x), exp(Wide(x))), (16 + 2 * std::fabs(x)) * kWideUnit) << x;
}

TEST(Wide, exp_of_a_sum_is_the_product) {
  for (int i = 1; i < 200; ++i) {
    const Wide a = -Wide(i) / 7, b = -Wide(i * i) / 11;
    const double size = std::fabs(static_cast<double>(a + b));
    EXPECT_LE(relative_difference(exp_nonpositive(a + b), exp_nonpositive(a) * exp_nonpositive(b)),
              (32 + 4 * size) * kWideUnit) << i;
  }
}

TEST(Wide, exp_far_below_every_double_is_zero) { EXPECT_EQ(exp_nonpositive(Wide(-0x1p100)), 0); }

TEST(Wide, the_lowest_bit_divides_every_number) {
  const double x[] = {0.75, -6.0, 0.0, 0x1p-149};
  EXPECT_EQ(lowest_bit(x, 1), -2);
  EXPECT_EQ(lowest_bit(x + 1, 1), 1);
  EXPECT_EQ(lowest_bit(x + 2, 1), 0);
  EXPECT_EQ(lowest_bit(x, 4), -149);
}

TEST(Wide, a_number_that_is_not_finite_has_no_lowest_bit) {
  const double x[] = {1.0, std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity()};
  EXPECT_EQ(lowest_bit(x, 2), kNotFinite);
  EXPECT_EQ(lowest_bit(x + 2, 1), kNotFinite);
}

TEST(Wide, a_dot_product_keeps_what_double_loses) {
  const double big = 0x1p40, a[] = {big, 1.0, -big}, b[] = {big, 0x1p-10, big};
  const Dot d = dot(a, b, 3, lowest_bit(a, 3) + lowest_bit(b, 3));
  EXPECT_EQ(d.value, Wide(0x1p-10));
  EXPECT_EQ(d.absolute, 0x1p81);
}

TEST(Wide, a_dot_product_wider_than_two_doubles_keeps_its_small_part) {
  const double a[] = {0x1.fffffep60, 0x1p-70, -0x1.fffffep60}, b[] = {1.0, 0x1.8p-40, 1.0};
  EXPECT_EQ(dot(a, b, 3, lowest_bit(a, 3) + lowest_bit(b, 3)).value, Wide(0x1.8p-110));
}

}  // namespace
}  // namespace attest
