// What the host gives the fused kernels, and what it has to know of each to launch it.
#pragma once

#include "kernels/hopper/fused.h"
#include "kernels/hopper/fused_store.cuh"

namespace attest::fused {

/// The forward split over keys: what is left for fused_combine.cu. Of row r = (b · heads + h) · seqlen_q + i and segment s: fp32
/// o[r][s][pitch] and {m, l} in sums[r][s]; see fused_forward.cu. Those of a row's nearest segments are in the farthest one of
/// them; segments without a key that the row may see by causality may be missing.
struct Partials {
  float* o;
  float2* sums;
  int segments, pitch;  // pitch: head_dim, rounded up to a multiple of 8

  __device__ __forceinline__ float* at(int64_t row, int segment) const { return o + (row * segments + segment) * pitch; }
  __device__ __forceinline__ float2* sums_at(int64_t row, int segment) const { return sums + row * segments + segment; }
};

struct ForwardArgs {
  CUtensorMap q, k, v;
  Problem problem;
  WorkList work;
  Rows out;
  float* lse;
  RowStrides lse_strides;
  int32_t* dominant;  // [batch, heads, seqlen_q]; may be null
  // Of the split kernel, whose pieces are (block of queries, range of segments), the range varying fastest; it leaves partials
  // instead of out, lse and dominant.
  int ranges, range_tiles;
  Partials partials;
};

struct KernelInfo {
  const void* function;
  const char* name;
  int threads, shared_bytes;
  int rows;  // queries or keys of a piece of work
};

KernelInfo forward_kernel_of(ElementType type, int padded_head_dim);
KernelInfo split_kernel_of(ElementType type, int padded_head_dim);

/// An element type and a padded head dim: what a kernel is made for.
template <class Element, int kHeadDim>
struct Instance {};
/// `info` of the one that is asked for. Faulty twins are for bf16 and head dims up to 64 alone.
template <class Info>
KernelInfo choose(ElementType type, int padded_head_dim, Info info) {
  if constexpr (kDefect == Defect::kNone) {
    const bool half = type == ElementType::kFloat16;
    if (half && padded_head_dim == 64) return info(Instance<__half, 64>());
    if (half) return info(Instance<__half, 128>());
    if (padded_head_dim == 128) return info(Instance<__nv_bfloat16, 128>());
  }
  return info(Instance<__nv_bfloat16, 64>());
}

/// Head dims are padded to this with zeros.
inline int padded_head_dim(const AttentionParams& p) { return p.head_dim <= 64 ? 64 : 128; }

}  // namespace attest::fused
