// The kernels of the forward split over keys beside fused_forward.cu's: for few queries, and the one that combines segments.
#pragma once

#include "kernels/hopper/fused_kernels.h"

namespace attest::fused {

struct DecodeArgs {
  CUtensorMap k, v;
  const uint16_t* q;
  RowStrides q_strides;
  Problem problem;
  Partials partials;
  int row_tiles;  // of 16 rows, the queries of a KV head's group
  int count;      // batch · KV heads · row tiles · segments
};
/// rows: 16, of a row tile.
KernelInfo decode_kernel_of(ElementType type, int padded_head_dim);

struct CombineArgs {
  Problem problem;
  Partials partials;
  int block_rows, range_tiles;  // queries and tiles that were worked together
  Rows out;
  float* lse;
  RowStrides lse_strides;
  int columns;  // of a block; launch_combine decides
};
/// To be launched right after the kernel that fills `partials`.
void launch_combine(const AttentionParams& p, CombineArgs args);

}  // namespace attest::fused
