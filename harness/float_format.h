// The three number formats of inputs and outputs, seen from float64: spacing, rounding, overflow.
#pragma once

#include "harness/attention_problem.h"

namespace attest {

struct FloatFormat {
  int precision;     // bits of the significand, the hidden one included
  int min_exponent;  // of the smallest normal number
  int max_exponent;  // of the largest finite number
  int width;         // bits in memory

  double smallest_subnormal() const;
  double unit_roundoff() const;  // 2^-precision
  /// What rounds to infinity: halfway between the largest finite number and its successor.
  double overflow_threshold() const;
};
FloatFormat float_format(Dtype dtype);

/// `x` rounded once to the nearest number of `dtype`, ties to even; infinite from the overflow threshold on.
double round_to(double x, Dtype dtype);

/// The bit pattern of round_to(x, dtype), in the low bits.
uint32_t bits_of(double x, Dtype dtype);

}  // namespace attest
