#include "harness/float_format.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>

#include "harness/compare.h"
#include "harness/tensors.h"

namespace attest {
namespace {

constexpr Dtype kDtypes[] = {Dtype::kFloat16, Dtype::kBFloat16, Dtype::kFloat32};

double value_of(uint32_t bits, Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat16: return static_cast<float>(at::Half(static_cast<uint16_t>(bits), at::Half::from_bits()));
    case Dtype::kBFloat16: return static_cast<float>(at::BFloat16(static_cast<uint16_t>(bits), at::BFloat16::from_bits()));
    case Dtype::kFloat32: break;
  }
  return std::bit_cast<float>(bits);
}

/// Bit patterns of positive numbers are ordered as the numbers: bits ± 1 is nextafter in each dtype.
void check_ulp(uint32_t bits, Dtype dtype) {
  const double x = value_of(bits, dtype), up = value_of(bits + 1, dtype);
  if (!std::isfinite(up)) return;
  ASSERT_EQ(ulp(x, up, dtype), up - x) << bits;
  if (bits == 0) return;
  const double down = value_of(bits - 1, dtype);
  ASSERT_EQ(ulp(x, down, dtype), x - down) << bits;
  ASSERT_EQ(ulp(-x, -down, dtype), x - down) << bits;
}

TEST(Ulp, is_the_distance_to_the_next_number_on_the_side_of_actual_for_every_fp16_and_bf16) {
  for (uint32_t bits = 0; bits < 0x7C00; ++bits) check_ulp(bits, Dtype::kFloat16);
  for (uint32_t bits = 0; bits < 0x7F80; ++bits) check_ulp(bits, Dtype::kBFloat16);
}

RC_GTEST_PROP(Ulp, is_the_distance_to_nextafter_in_fp32, ()) {
  const auto bits = *rc::gen::inRange<uint32_t>(1, 0x7F7FFFFF);
  const float x = std::bit_cast<float>(bits), up = std::nextafterf(x, INFINITY), down = std::nextafterf(x, 0.0F);
  RC_ASSERT(ulp(x, up, Dtype::kFloat32) == static_cast<double>(up) - x);
  RC_ASSERT(ulp(x, down, Dtype::kFloat32) == static_cast<double>(x) - down);
}

TEST(Ulp, of_a_power_of_two_is_taken_in_the_binade_below_only_when_actual_is_smaller) {
  for (Dtype dtype : kDtypes) {
    const double above = ulp(1.0, 1.0, dtype);
    EXPECT_EQ(ulp(1.0, 1.5, dtype), above);
    EXPECT_EQ(ulp(1.0, 0.99, dtype), above / 2);
    EXPECT_EQ(ulp(-1.0, -0.99, dtype), above / 2);
    EXPECT_EQ(ulp(1.25, 0.99, dtype), above);
  }
}

TEST(Ulp, is_never_under_the_smallest_subnormal) {
  for (Dtype dtype : kDtypes) {
    const double least = float_format(dtype).smallest_subnormal();
    for (double x : {0.0, -0.0, least, 3 * least, least / 8, 0x1p-1074, std::ldexp(1.0, float_format(dtype).min_exponent)})
      EXPECT_EQ(ulp(x, 0.0, dtype), least) << x;
  }
}

TEST(RoundTo, leaves_every_number_of_the_format_as_it_is) {
  for (Dtype dtype : {Dtype::kFloat16, Dtype::kBFloat16})
    for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
      const double x = value_of(bits, dtype);
      if (!std::isnan(x)) {
        ASSERT_EQ(bits_of(x, dtype), bits);
      }
    }
}

TEST(RoundTo, takes_the_nearest_and_the_even_one_on_ties_once) {
  EXPECT_EQ(round_to(1.0 + 0x1p-11, Dtype::kFloat16), 1.0);
  EXPECT_EQ(round_to(1.0 + 0x1p-11 + 0x1p-40, Dtype::kFloat16), 1.0 + 0x1p-10);  // through fp32 it would be the tie
  EXPECT_EQ(round_to(1.0 + 3 * 0x1p-11, Dtype::kFloat16), 1.0 + 0x1p-9);
  EXPECT_EQ(round_to(65519.999, Dtype::kFloat16), 65504.0);
  EXPECT_EQ(round_to(65520.0, Dtype::kFloat16), INFINITY);
  EXPECT_EQ(round_to(-0x1p-25, Dtype::kFloat16), 0.0);
  EXPECT_TRUE(std::signbit(round_to(-0x1p-25, Dtype::kFloat16)));
}

RC_GTEST_PROP(RoundTo, agrees_with_the_processor_in_fp32, ()) {
  const double x = std::bit_cast<double>(*rc::gen::arbitrary<uint64_t>());
  RC_PRE(!std::isnan(x));
  RC_ASSERT(bits_of(x, Dtype::kFloat32) == std::bit_cast<uint32_t>(static_cast<float>(x)));
}

}  // namespace
}  // namespace attest
