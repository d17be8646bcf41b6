// What the host gives the fused kernels, and what it has to know of each to launch it.
#pragma once

#include "kernels/hopper/fused.h"
#include "kernels/hopper/fused_store.cuh"

namespace attest::fused {

struct ForwardArgs {
  CUtensorMap q, k, v;
  Problem problem;
  WorkList work;
  Rows out;
  float* lse;
  RowStrides lse_strides;
  int32_t* dominant;  // [batch, heads, seqlen_q]; may be null
};

struct KernelInfo {
  const void* function;
  const char* name;
  int threads, shared_bytes;
  int rows;  // queries or keys of a piece of work
};

KernelInfo forward_kernel_of(ElementType type, int padded_head_dim);

/// Head dims are padded to this with zeros.
inline int padded_head_dim(const AttentionParams& p) { return p.head_dim <= 64 ? 64 : 128; }

}  // namespace attest::fused
