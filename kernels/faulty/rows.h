// Rows of contiguous tensors [batch, heads, length, head_dim], for the plain kernels of naive.h: fp32, and fp64 gradients, whose
// products of subnormal fp32 operands would each lose half a unit.
#pragma once

#include <vector>

#include "harness/tensors.h"

namespace attest::faulty {

using Floats = std::vector<float>;

inline float dot(const float* a, const float* b, int64_t n) {
  float sum = 0;
  for (int64_t d = 0; d < n; ++d) sum += a[d] * b[d];
  return sum;
}

/// In fp32 and contiguous; undefined stays so.
inline at::Tensor host(const at::Tensor& t) { return t.defined() ? t.to(at::kFloat).contiguous() : t; }

template <class Number = float>
Number* row_of(const at::Tensor& t, int64_t b, int64_t h, int64_t i) {
  return t.data_ptr<Number>() + ((b * t.size(1) + h) * t.size(2) + i) * t.size(3);
}

}  // namespace attest::faulty
