#include "kernels/device/narrow_float.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <gtest/gtest.h>

#include <cmath>

namespace attest::fixed_order {
namespace {

void expect_same(float actual, float expected, uint32_t pattern) {
  if (std::isnan(expected)) {
    ASSERT_TRUE(std::isnan(actual)) << std::hex << pattern;
  } else {
    ASSERT_EQ(bits_of(actual), bits_of(expected)) << std::hex << pattern;
  }
}

TEST(NarrowFloat, widening_is_exact_for_every_pattern) {
  for (uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    expect_same(widen(Float16{half}), static_cast<float>(c10::Half(half, c10::Half::from_bits())), bits);
    expect_same(widen(BFloat16{half}), static_cast<float>(c10::BFloat16(half, c10::BFloat16::from_bits())), bits);
  }
}

TEST(NarrowFloat, narrowing_rounds_to_nearest_even) {
  for (uint64_t wide = 0; wide <= 0xffffffffU; wide += 1009) {
    const float x = float_of(static_cast<uint32_t>(wide));
    expect_same(widen(narrow<Float16>(x)), static_cast<float>(c10::Half(x)), static_cast<uint32_t>(wide));
    expect_same(widen(narrow<BFloat16>(x)), static_cast<float>(c10::BFloat16(x)), static_cast<uint32_t>(wide));
  }
}

TEST(NarrowFloat, every_pattern_survives_a_round_trip_and_its_upper_neighbours_midpoint_goes_to_even) {
  for (uint32_t bits = 0; bits < 0x7c00U; ++bits) {
    const auto pattern = static_cast<uint16_t>(bits);
    ASSERT_EQ(narrow<Float16>(widen(Float16{pattern})).bits, pattern);
    const float above = bits == 0x7bffU ? 65536.0F : widen(Float16{static_cast<uint16_t>(bits + 1)});
    const float middle = 0.5F * (widen(Float16{pattern}) + above);
    ASSERT_EQ(narrow<Float16>(middle).bits, (bits & 1U) == 0U ? bits : bits + 1);
  }
}

}  // namespace
}  // namespace attest::fixed_order
