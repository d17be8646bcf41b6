// The bit pattern of the nearest number (ties to even) in a dtype, by integer arithmetic: no conversion of any library's.
#pragma once

#include <cstdint>

#include "harness/attention_problem.h"

namespace attest {

/// Overflows to infinity; a NaN becomes the positive quiet NaN without payload. fp16 and bf16 fill the low 16 bits.
uint32_t encode(double x, Dtype dtype);

}  // namespace attest
