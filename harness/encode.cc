#include "harness/encode.h"

#include <bit>

namespace attest {
namespace {

struct Format {
  int exponent_bits, fraction_bits;
};

constexpr Format format_of(Dtype dtype) {
  if (dtype == Dtype::kFloat16) return {5, 10};
  if (dtype == Dtype::kBFloat16) return {8, 7};
  return {8, 23};
}

/// m · 2^-shift to the nearest integer, ties to even; m < 2^53.
uint64_t shift_to_nearest_even(uint64_t m, int shift) {
  if (shift > 53) return 0;  // under one half
  const uint64_t quotient = m >> shift, rest = m & ((uint64_t{1} << shift) - 1), half = uint64_t{1} << (shift - 1);
  return quotient + (rest > half || (rest == half && (quotient & 1) != 0) ? 1 : 0);
}

}  // namespace

uint32_t encode(double x, Dtype dtype) {
  const auto [exponent_bits, fraction_bits] = format_of(dtype);
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  const auto sign = static_cast<uint32_t>(bits >> 63) << (exponent_bits + fraction_bits);
  const int exponent = static_cast<int>(bits >> 52 & 0x7FF);
  const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
  const uint32_t infinity = ((uint32_t{1} << exponent_bits) - 1) << fraction_bits;
  if (exponent == 0x7FF) return fraction != 0 ? infinity | uint32_t{1} << (fraction_bits - 1) : sign | infinity;
  if (exponent == 0) return sign;  // zero, or a double subnormal, far below every dtype

  const uint64_t significand = fraction | uint64_t{1} << 52;
  const int biased = exponent - 1023 + (1 << (exponent_bits - 1)) - 1;  // below 1: subnormal
  const int shift = 52 - fraction_bits + (biased < 1 ? 1 - biased : 0);
  const uint64_t rounded = shift_to_nearest_even(significand, shift);
  // The hidden bit adds 1 to the exponent field, a carry out of the fraction another.
  const uint64_t magnitude = (static_cast<uint64_t>(biased < 1 ? 0 : biased - 1) << fraction_bits) + rounded;
  return magnitude >= infinity ? sign | infinity : sign | static_cast<uint32_t>(magnitude);
}

}  // namespace attest
