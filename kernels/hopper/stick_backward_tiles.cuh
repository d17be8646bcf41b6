// What the two backward kernels of stick-breaking share: loading keys, what a row's remainder is worth, factors of outputs.
#pragma once

#include "kernels/hopper/stick_backward.h"
#include "kernels/hopper/stick_load.cuh"

namespace attest::stick {

/// drem·rem of a row: F before its farthest key. `head` of all batch elements.
__device__ __forceinline__ float remainder_worth(const BackwardArgs& a, int head, int row) {
  if (a.drem.data == nullptr || row >= a.problem.seqlen_q || kDefect == Defect::kRemainderDropped) return 0.0F;
  const int batch = head / a.problem.heads, h = head % a.problem.heads;
  return a.drem.data[a.drem.strides.at(batch, h, row)] * a.rem.data[a.rem.strides.at(batch, h, row)];
}

/// Infinity times a sum of 0 would be NaN.
__device__ __forceinline__ float finite(float x) {
  constexpr float kLargest = 0x1.fffffep127F;
  return fminf(fmaxf(x, -kLargest), kLargest);
}

}  // namespace attest::stick
