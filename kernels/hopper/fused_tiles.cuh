// What the fused kernels share on the device: the problem, which piece of work a block takes next, visibility, stores.
#pragma once

#include "kernels/hopper/fused_lanes.cuh"

namespace attest::fused {

constexpr int kKeyTile = 128;     // keys of a tile of the forward pass, cut at absolute multiples
constexpr int kSegmentTiles = 4;  // tiles of a segment: 512 keys, at absolute multiples
constexpr float kLn2 = 0.69314718055994531F, kLog2E = 1.4426950408889634F;

/// Strides of [batch, head, row], in elements.
struct RowStrides {
  int64_t batch, head, row;
  __device__ __forceinline__ int64_t at(int b, int h, int r) const { return b * batch + h * head + r * row; }
};

struct Problem {
  int batch, heads, group, seqlen_q, seqlen_kv, head_dim;  // heads: of the queries
  bool causal;
  float logit_scale;     // |softmax_scale|·log2 e > 0: logits in log2 units; q carries the sign
  const uint32_t* keep;  // [batch][keep_words]: bit j%32 of word j/32 says that key j is kept; null: all are
  int keep_words;        // a multiple of 4; bits past seqlen_kv are 0
};

/// The pieces of work of a launch, in the order in which blocks take them: the longer ones in sections of heads whose keys and
/// values fit the L2, the longest first in each; then the `late` shorter ones of every head, which even out what is left.
/// Who takes which piece moves time, never bits.
struct WorkList {
  int heads, section_heads, pieces, late, count;  // heads of all batch elements; pieces a head; count = heads · pieces
  bool longest_is_last;
  unsigned* next;  // 0 before and after the kernel
};
struct Piece {
  int head, index;
};

__device__ __forceinline__ Piece piece_of(const WorkList& w, int number) {
  const int early = w.pieces - w.late, of_section = w.section_heads * early;
  const bool in_section = number < w.heads * early;
  const int first = in_section ? number / of_section * w.section_heads : 0;
  const int heads = in_section ? min(w.section_heads, w.heads - first) : w.heads;
  const int rest = number - (in_section ? first : w.heads) * early, within = rest / heads;
  const int rank = in_section ? within : early + within;
  return {first + rest - within * heads, w.longest_is_last ? w.pieces - 1 - rank : rank};
}
/// Called once a piece, so that the counter is 0 again when all are done.
__device__ __forceinline__ int take_next(const WorkList& w) {
  return static_cast<int>(gridDim.x + atomicInc(w.next, w.count - 1));
}

/// The last key that query `row` may see by causality; −1 or less: none. Rows past the end count as the last.
__device__ __forceinline__ int last_visible(const Problem& p, int row) {
  return p.causal ? p.seqlen_kv - p.seqlen_q + min(row, p.seqlen_q - 1) : p.seqlen_kv - 1;
}
/// Tiles [0, n) that hold every key that rows up to `last_row` may see; at least 1.
__device__ __forceinline__ int visible_tiles(const Problem& p, int last_row, int tile) {
  return max(last_visible(p, last_row), 0) / tile + 1;
}

/// Sets the hidden entries of a thread's rows {0, 8} to −∞. `first_key`: the tile's; last[h]: what row h may see.
template <int kSize>
__device__ __forceinline__ void hide(float (&s)[kSize], const int (&last)[2], int first_key, int lane_column) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int limit = last[h] - first_key - lane_column;
#pragma unroll
    for (int b = 0; b < kSize / 4; ++b)
#pragma unroll
      for (int e = 0; e < 2; ++e)
        if (8 * b + e > limit) s[4 * b + 2 * h + e] = -INFINITY;
  }
}
/// The same for padded keys. `words`: the tile's bits.
template <int kSize>
__device__ __forceinline__ void hide_padded(float (&s)[kSize], const uint32_t* __restrict__ words, int lane_column) {
#pragma unroll
  for (int w = 0; w < kSize / 16; ++w) {
    const uint32_t bits = words[w] >> lane_column;
#pragma unroll
    for (int b = 0; b < 4; ++b)
#pragma unroll
      for (int e = 0; e < 2; ++e)
        if (!(bits >> (8 * b + e) & 1)) s[16 * w + 4 * b + e] = s[16 * w + 4 * b + 2 + e] = -INFINITY;
  }
}

template <int kSize>
__device__ __forceinline__ void clear(float (&d)[kSize]) {
#pragma unroll
  for (int i = 0; i < kSize; ++i) d[i] = 0.0F;
}
/// What rounds a tile to 8 bits, of which 3 follow the leading one.
__device__ __forceinline__ float in_8_bits(float x) { return __uint_as_float((__float_as_uint(x) + 0x80000U) & 0xFFF00000U); }
/// Rounds an accumulator tile to the A operand of multiply_add: a[4k … 4k + 3] are its columns 16k … 16k + 15.
template <class Element, int kSize>
__device__ __forceinline__ void round_to_operand(uint32_t (&a)[kSize / 2], const float (&s)[kSize]) {
#pragma unroll
  for (int i = 0; i < kSize / 2; ++i) {
    if constexpr (kDefect == Defect::kWeightsIn8Bits)
      a[i] = hopper::pack<Element>(in_8_bits(s[2 * i]), in_8_bits(s[2 * i + 1]));
    else
      a[i] = hopper::pack<Element>(s[2 * i], s[2 * i + 1]);
  }
}

}  // namespace attest::fused
