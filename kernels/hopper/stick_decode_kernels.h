// What the host gives the kernels of stickbreaking.cuda.decode.
#pragma once

#include "kernels/hopper/stick_decode.h"
#include "kernels/hopper/stick_kernels.h"

namespace attest::stick {

/// The padding mask as it comes: keep[batch · of_batch + key · of_key] ≠ 0: the key exists. data null: all do.
struct KeyMask {
  const uint8_t* data;
  int64_t of_batch, of_key;
};

/// What segments leave: of row r = (b · heads + h) · seqlen_q + i and segment s, fp32 o[r][s][pitch] and stick[r][s].
struct Partials {
  float* o;
  float* stick;
  int segments, pitch;  // pitch: head_dim_v, rounded up to a multiple of 8

  __device__ __forceinline__ float* at(int64_t row, int segment) const { return o + (row * segments + segment) * pitch; }
  __device__ __forceinline__ float* stick_at(int64_t row, int segment) const { return stick + row * segments + segment; }
};

struct DecodeArgs {
  CUtensorMap k, v;
  const uint16_t* q;
  RowStrides q_strides;
  Problem problem;  // its keep is not used
  const int32_t* seqlens_kv;
  KeyMask keep;
  Partials partials;
  int row_tiles;  // of 16 rows, the queries of a KV head's group
  int count;      // batch · KV heads · row tiles · segments
};
/// rows: 16, of a row tile.
KernelInfo decode_kernel_of(ElementType type, int padded_head_dim);

struct CombineArgs {
  Problem problem;
  const int32_t* seqlens_kv;
  uint32_t* errors;
  Partials partials;
  Rows out;
  float* rem;
  RowStrides rem_strides;
  int columns;  // of a block; launch_combine decides
};
/// To be launched right after the kernel that fills `partials`.
void launch_combine(const AttentionParams& p, CombineArgs args);

/// The keys of batch element b.
__device__ __forceinline__ int length_of(const Problem& p, const int32_t* seqlens_kv, int b) {
  return seqlens_kv == nullptr ? p.seqlen_kv : min(max(seqlens_kv[b], 0), p.seqlen_kv);
}
__device__ __forceinline__ int segments_of(int length) {
  constexpr int kSegment = kSegmentTiles * kKeyTile;
  return (length + kSegment - 1) / kSegment;
}

}  // namespace attest::stick
