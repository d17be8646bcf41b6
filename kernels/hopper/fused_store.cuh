// From accumulators to rows in memory. A thread of a warpgroup's tile holds pairs of neighbouring columns; four lanes exchange
// them, so that each stores 16 bytes at a time where the rows' alignment allows it.
#pragma once

#include "kernels/hopper/fused_tiles.cuh"

namespace attest::fused {

/// A matrix [batch, head, row, dim] of 16-bit elements, unit inner stride; `aligned`: rows may be stored 16 bytes at a time.
struct Rows {
  void* data;
  RowStrides strides;
  bool aligned;
};

/// Lane x of a quad gives v[y] to lane y: a 4×4 transpose in four exchanges.
__device__ __forceinline__ void quad_transpose(uint32_t (&v)[4], int x) {
  const bool odd = x & 1, high = x & 2;
  uint32_t first = __shfl_xor_sync(~0U, odd ? v[0] : v[1], 1), second = __shfl_xor_sync(~0U, odd ? v[2] : v[3], 1);
  if (odd) v[0] = first, v[2] = second;
  if (!odd) v[1] = first, v[3] = second;
  first = __shfl_xor_sync(~0U, high ? v[0] : v[2], 2), second = __shfl_xor_sync(~0U, high ? v[1] : v[3], 2);
  if (high) v[0] = first, v[1] = second;
  if (!high) v[2] = first, v[3] = second;
}

/// Columns [column, column + 8) of one row; those from `head_dim` on don't exist.
__device__ __forceinline__ void store_some(uint16_t* row, const uint32_t (&v)[4], int column, int head_dim) {
#pragma unroll
  for (int i = 0; i < 8; ++i)
    if (column + i < head_dim) row[column + i] = static_cast<uint16_t>(v[i / 2] >> (16 * (i % 2)));
}

/// Row h of a thread's two, times `factor`. kWhole: all columns exist and rows are aligned.
template <class Element, bool kWhole, int h, int kSize>
__device__ __forceinline__ void store_row(uint16_t* row, bool exists, int head_dim, const float (&d)[kSize], float factor,
                                          int lane) {
#pragma unroll
  for (int i = 0; i < kSize / 16; ++i) {
    uint32_t v[4];
#pragma unroll
    for (int x = 0; x < 4; ++x)
      v[x] = hopper::pack<Element>(d[16 * i + 4 * x + 2 * h] * factor, d[16 * i + 4 * x + 2 * h + 1] * factor);
    quad_transpose(v, lane);
    const int column = 8 * (4 * i + lane);
    if (kWhole && exists) *reinterpret_cast<uint4*>(row + column) = make_uint4(v[0], v[1], v[2], v[3]);
    if (!kWhole && exists) store_some(row, v, column, head_dim);
  }
}

/// Rows `row` and `row + 8` of a thread, times factor[h]; rows from `rows` on don't exist. `lane` in the quad.
template <class Element, int kSize>
__device__ __forceinline__ void store_rows(const Rows& to, int batch, int head, int row, int rows, int head_dim,
                                           const float (&d)[kSize], const float (&factor)[2], int lane) {
  uint16_t* first = static_cast<uint16_t*>(to.data) + to.strides.at(batch, head, row);
  uint16_t* second = first + 8 * to.strides.row;
  if (to.aligned && head_dim == 2 * kSize) {
    store_row<Element, true, 0>(first, row < rows, head_dim, d, factor[0], lane);
    store_row<Element, true, 1>(second, row + 8 < rows, head_dim, d, factor[1], lane);
  } else {
    store_row<Element, false, 0>(first, row < rows, head_dim, d, factor[0], lane);
    store_row<Element, false, 1>(second, row + 8 < rows, head_dim, d, factor[1], lane);
  }
}

}  // namespace attest::fused
