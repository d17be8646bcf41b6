// fp16 and bf16 by integer arithmetic: the same bits on host and device, no vendor header. Widening is exact; narrowing
// rounds to nearest even, overflows to infinity and keeps subnormals; NaN stays NaN.
#pragma once

#include <cstdint>

#include "kernels/device/fixed_order_math.h"

namespace attest::fixed_order {

struct Float16 {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};

ATTEST_HOST_DEVICE inline float widen(float x) { return x; }
ATTEST_HOST_DEVICE inline float widen(BFloat16 x) { return float_of(static_cast<uint32_t>(x.bits) << 16); }
/// The exponent is rebased by an exact multiplication by 2^112, which also normalises subnormals.
ATTEST_HOST_DEVICE inline float widen(Float16 x) {
  const uint32_t magnitude = static_cast<uint32_t>(x.bits & 0x7fffU) << 13;
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000U) << 16;
  const uint32_t finite = bits_of(float_of(magnitude) * power_of_two(112));
  return float_of(sign | ((x.bits & 0x7c00U) == 0x7c00U ? kInfinityBits | magnitude : finite));
}

ATTEST_HOST_DEVICE inline uint16_t bfloat16_bits(float x) {
  const uint32_t bits = bits_of(x);
  if ((bits & 0x7fffffffU) > kInfinityBits) return static_cast<uint16_t>((bits >> 16) | 0x0040U);
  return static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

ATTEST_HOST_DEVICE inline uint16_t float16_bits(float x) {
  const uint32_t sign = (bits_of(x) >> 16) & 0x8000U;
  const uint32_t magnitude = bits_of(x) & 0x7fffffffU;
  if (magnitude > kInfinityBits) return static_cast<uint16_t>(sign | 0x7e00U);
  if (magnitude >= 0x477ff000U) return static_cast<uint16_t>(sign | 0x7c00U);  // 65520 and over
  if (magnitude < 0x38800000U) {  // under 2^-14: 0.5 has the spacing 2^-24 of fp16's subnormals, the addition rounds
    return static_cast<uint16_t>(sign | (bits_of(float_of(magnitude) + 0.5F) - bits_of(0.5F)));
  }
  const uint32_t rebased = magnitude - (112U << 23);
  return static_cast<uint16_t>(sign | ((rebased + 0xfffU + ((rebased >> 13) & 1U)) >> 13));
}

template <class T>
ATTEST_HOST_DEVICE T narrow(float x);
template <>
ATTEST_HOST_DEVICE inline float narrow<float>(float x) {
  return x;
}
template <>
ATTEST_HOST_DEVICE inline Float16 narrow<Float16>(float x) {
  return {float16_bits(x)};
}
template <>
ATTEST_HOST_DEVICE inline BFloat16 narrow<BFloat16>(float x) {
  return {bfloat16_bits(x)};
}

}  // namespace attest::fixed_order
