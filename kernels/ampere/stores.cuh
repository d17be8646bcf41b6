// From accumulators to a block's columns of an output.
#pragma once

#include "kernels/ampere/problem.h"

namespace attest::portable {

/// A block's chunk of 128 columns, of `head_dim`.
struct Chunk {
  int first, columns;
  __device__ __forceinline__ Chunk(int chunk, int head_dim) : first(chunk * kColumns), columns(min(head_dim - first, kColumns)) {}
  __device__ __forceinline__ int first_slab() const { return first / 64; }
  __device__ __forceinline__ int slabs() const { return columns <= 0 ? 0 : (columns + 63) / 64; }
};

__device__ __forceinline__ Rows columns_of(const Rows& x, const Chunk& chunk) {
  return {static_cast<uint16_t*>(x.data) + chunk.first, x.strides, x.aligned};
}

/// This thread's rows of 64, `first` the tile's first row in the sequence, times factor[h].
template <class Element, int kSize>
__device__ __forceinline__ void store_queries(const Rows& to, const Chunk& chunk, const Sequence& s, int head, int first,
                                              const float (&d)[kSize], const float (&factor)[2]) {
  fused::store_rows<Element>(columns_of(to, chunk), s.batch, head, s.q_begin + first + fused::row_in_warpgroup(), s.q_begin + s.n_q,
                             chunk.columns, d, factor, fused::lane_in_quad());
}

}  // namespace attest::portable
