// What the host gives the stick-breaking kernels, and what it has to know of each to launch it.
#pragma once

#include <algorithm>

#include "kernels/hopper/fused_kernels.h"
#include "kernels/hopper/stick.h"

namespace attest::stick {

using fused::Defect;
using fused::kDefect;
using fused::KernelInfo;
using fused::Piece;
using fused::Rows;
using fused::RowStrides;
using fused::WorkList;

constexpr int kKeyTile = 128;      // keys of a tile of the forward pass, cut at absolute multiples
constexpr int kSegmentTiles = 4;   // tiles of a segment: 512 keys, at absolute multiples
constexpr int kSavedTile = 64;     // keys, and queries, of a tile of the backward

struct Problem {
  int batch, heads, group, seqlen_q, seqlen_kv, head_dim, head_dim_v;  // heads: of the queries
  int first_limit;       // the last key that query 0 may see by causality; may be negative
  float logit_scale;     // |softmax_scale|·log2 e > 0: logits in log2 units; q carries the sign
  const uint32_t* keep;  // [batch][keep_words]: bit j%32 of word j/32 says that key j is kept; null: all are
  int keep_words;        // a multiple of 4; bits past seqlen_kv are 0
};

/// What the passes leave for each other, of every query (padded_rows a head, a multiple of 128), fp32 unless said.
struct Saved {
  float* stick;     // [heads of all][tiles][padded_rows]: before the nearest key of the tile of 64; null: not wanted
  float* far;       // the same of F, before the tile's farthest key
  int* first_tile;  // [heads of all][padded_rows / 64]: the farthest tile visited; of those before it nothing is written
  int padded_rows, tiles;

  __host__ __device__ int64_t at(int head, int tile, int row) const {
    return (static_cast<int64_t>(head) * tiles + tile) * padded_rows + row;
  }
  __host__ __device__ int64_t block_at(int head, int row) const {
    return static_cast<int64_t>(head) * (padded_rows / kSavedTile) + row / kSavedTile;
  }
};

struct ForwardArgs {
  CUtensorMap q, k, v;
  Problem problem;
  WorkList work;
  Rows out;   // data null: only what is saved is wanted
  float* rem;
  RowStrides rem_strides;
  Saved saved;
};

KernelInfo forward_kernel_of(ElementType type, int padded_head_dim);

/// Both head dims are padded to this with zeros.
inline int padded_head_dim(const AttentionParams& p) { return std::max(p.head_dim, p.head_dim_v) <= 64 ? 64 : 128; }

/// In fp16 what is below 2^−24 is lost on the way to the matrix unit, so weights, which are at most 1, go there times 2^15.
template <class Element>
constexpr float kWeightScale = std::is_same_v<Element, __half> ? 32768.0F : 1.0F;

/// The last key that query `row` may see by causality; −1 or less: none. Rows past the end count as the last.
__device__ __forceinline__ int last_visible(const Problem& p, int row) { return p.first_limit + min(row, p.seqlen_q - 1); }
/// Tiles [0, n) that hold every key that rows up to `last_row` may see; at least 1.
__device__ __forceinline__ int visible_tiles(const Problem& p, int last_row, int tile) {
  return max(last_visible(p, last_row), 0) / tile + 1;
}

}  // namespace attest::stick
