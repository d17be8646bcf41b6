// Dot products of 16-bit elements by fma, in the order that the references of rows have (fused_backward_rows.cu).
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

namespace attest::fused {

template <class Element>
__device__ __forceinline__ float2 widened(uint32_t pair) {
  if constexpr (std::is_same_v<Element, __half>) return __half22float2(*reinterpret_cast<const __half2*>(&pair));
  return make_float2(__uint_as_float(pair << 16), __uint_as_float(pair & 0xFFFF0000U));
}

/// sum + a·b, element after element.
template <class Element>
__device__ __forceinline__ float dot_eight(const uint4& a, const uint4& b, float sum) {
  const uint32_t x[4] = {a.x, a.y, a.z, a.w}, y[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 p = widened<Element>(x[i]), q = widened<Element>(y[i]);
    sum = fmaf(p.y, q.y, fmaf(p.x, q.x, sum));
  }
  return sum;
}

}  // namespace attest::fused
