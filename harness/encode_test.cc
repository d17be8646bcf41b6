#include "harness/encode.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "harness/philox.h"
#include "harness/tensors.h"

namespace attest {
namespace {

/// The nearest number by libtorch's conversion from fp32.
uint32_t by_torch(float x, Dtype dtype) {
  if (dtype == Dtype::kFloat16) return c10::Half(x).x;
  if (dtype == Dtype::kBFloat16) return c10::BFloat16(x).x;
  return std::bit_cast<uint32_t>(x);
}

TEST(Encode, agrees_with_libtorch_on_random_fp32_patterns) {
  for (Dtype dtype : EnumSet<Dtype>::all().members())
    for (uint32_t i = 0; i < 200000; ++i) {
      const float x = std::bit_cast<float>(philox({i, 0, 0, 0}, {1, 2})[0]);
      if (!std::isnan(x)) {
        ASSERT_EQ(encode(x, dtype), by_torch(x, dtype)) << x << " as " << name_of(dtype);
      }
    }
}

TEST(Encode, agrees_with_libtorch_around_every_fp16_value) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float x = c10::Half(static_cast<uint16_t>(bits), c10::Half::from_bits());
    if (std::isnan(x)) continue;
    for (float y : {x, std::nextafter(x, 1e9F), std::nextafter(x, -1e9F)})
      ASSERT_EQ(encode(y, Dtype::kFloat16), by_torch(y, Dtype::kFloat16)) << y;
  }
}

TEST(Encode, ties_go_to_the_even_neighbour) {
  EXPECT_EQ(encode(1 + 0x1p-11, Dtype::kFloat16), 0x3c00U);
  EXPECT_EQ(encode(1 + 0x3p-11, Dtype::kFloat16), 0x3c02U);
  EXPECT_EQ(encode(0x1p-25, Dtype::kFloat16), 0U);
  EXPECT_EQ(encode(0x3p-25, Dtype::kFloat16), 2U);
  EXPECT_EQ(encode(65520.0, Dtype::kFloat16), 0x7c00U);
  EXPECT_EQ(encode(-65519.9, Dtype::kFloat16), 0xfbffU);
}

TEST(Encode, rounds_once_and_not_through_fp32) {
  // In fp32 this becomes the tie 1 + 2^-8, which then goes down.
  EXPECT_EQ(encode(1 + 0x1p-8 + 0x1p-40, Dtype::kBFloat16), 0x3f81U);
}

TEST(Encode, keeps_what_is_not_finite_and_the_sign_of_zero) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(encode(kInf, Dtype::kBFloat16), 0x7f80U);
  EXPECT_EQ(encode(-kInf, Dtype::kFloat16), 0xfc00U);
  EXPECT_EQ(encode(std::nan(""), Dtype::kFloat16), 0x7e00U);
  EXPECT_EQ(encode(std::nan(""), Dtype::kFloat32), 0x7fc00000U);
  EXPECT_EQ(encode(-0.0, Dtype::kBFloat16), 0x8000U);
}

}  // namespace
}  // namespace attest
