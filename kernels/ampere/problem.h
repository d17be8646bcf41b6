// What the portable kernels are given: plain data for host and device. Sequences come from here alone, so that a kernel does not
// know whether they are the elements of a batch, pieces of packed rows, or beginnings of buffers.
#pragma once

#include "kernels/hopper/fused_tiles.cuh"
#include "kernels/hopper/fused_store.cuh"

namespace attest::portable {

using fused::Rows;
using fused::RowStrides;

constexpr int kTile = 64;       // rows of a tile in shared memory, and queries or keys of a block
constexpr int kThreads = 128;   // four warps of 16 rows
constexpr int kColumns = 128;   // the most columns of an output that a block makes; wider ones take several, which repeat the scores
constexpr int kSlabBytes = kTile * 64 * 2;  // 64 rows × 64 columns

/// 16-bit elements [batch, head, row, dim], any strides; `aligned`: rows consist of aligned pieces of 16 bytes.
struct Operand {
  const uint16_t* data;
  int64_t batch, head, row, dim;
  int columns;
  bool aligned;

  __host__ __device__ int slabs() const { return (columns + 63) / 64; }
};

/// Queries [q_begin, q_begin + n_q) and keys [kv_begin, kv_begin + n_kv) of a batch element.
struct Sequence {
  int batch, q_begin, n_q, kv_begin, n_kv;
};

struct Problem {
  int sequences, heads, group;          // heads: of the queries
  int seqlen_q, seqlen_kv;              // rows of the tensors
  int most_q, most_kv;                  // of a sequence
  bool causal;
  int hidden;                           // 1: a query does not see the key at its own position
  float logit_scale;                    // |softmax_scale|·log2 e > 0: logits in log2 units
  uint32_t sign_mask, sign_flip;        // pair & mask ^ flip is a pair of elements with the scale's sign; zeros for a scale of 0
  const uint32_t* keep;                 // [batch][keep_words]: bit j%32 of word j/32 says that key j is kept; null: all are
  int keep_words;
  const int32_t *begins_q, *begins_kv;  // [sequences + 1]: packed, one after another; null: not so
  const int32_t *used_q, *used_kv;      // [batch]: rows that a batch element uses; null: all

  __device__ __forceinline__ Sequence sequence(int i) const {
    if (begins_q != nullptr) {
      const int q = bounded(begins_q[i], seqlen_q), kv = bounded(begins_kv[i], seqlen_kv);
      return {0, q, max(bounded(begins_q[i + 1], seqlen_q) - q, 0), kv, max(bounded(begins_kv[i + 1], seqlen_kv) - kv, 0)};
    }
    return {i, 0, used_q != nullptr ? bounded(used_q[i], seqlen_q) : seqlen_q, 0,
            used_kv != nullptr ? bounded(used_kv[i], seqlen_kv) : seqlen_kv};
  }
  __device__ __forceinline__ static int bounded(int x, int most) { return min(max(x, 0), most); }

  /// The last key that query `row` of `s` may see by causality; −1 or less: none. Rows past the end count as the last.
  __device__ __forceinline__ int last_visible(const Sequence& s, int row) const {
    return causal ? s.n_kv - s.n_q - hidden + min(row, s.n_q - 1) : s.n_kv - 1;
  }
  /// Tiles [0, n) that hold every key that queries up to `last_row` may see; at least 1.
  __device__ __forceinline__ int visible_tiles(const Sequence& s, int last_row, int tile) const {
    return max(last_visible(s, last_row), 0) / tile + 1;
  }
  /// The first tile of queries that may see `key`.
  __device__ __forceinline__ int first_query_tile(const Sequence& s, int key) const {
    return causal ? max(key - (s.n_kv - s.n_q - hidden), 0) / kTile : 0;
  }
  /// Of the heads of all batch elements, head h of s's; its rows in arrays of seqlen_q a head begin at first_row.
  __device__ __forceinline__ int of_all(const Sequence& s, int head) const { return s.batch * heads + head; }
  __device__ __forceinline__ int64_t row_of_all(const Sequence& s, int head, int row) const {
    return static_cast<int64_t>(of_all(s, head)) * seqlen_q + s.q_begin + row;
  }
  __device__ __forceinline__ bool kept(const Sequence& s, int key) const {
    if (keep == nullptr) return true;
    const int j = s.kv_begin + key;
    return keep[static_cast<int64_t>(s.batch) * keep_words + j / 32] >> j % 32 & 1;
  }
  /// The bits of keys first_key … first_key + 32·kWords − 1; first_key is a multiple of 32.
  template <int kWords>
  __device__ __forceinline__ void kept_words(const Sequence& s, int first_key, uint32_t (&words)[kWords]) const {
    const uint32_t* from = keep + static_cast<int64_t>(s.batch) * keep_words;
    const int j = s.kv_begin + first_key, last = keep_words - 1;
#pragma unroll
    for (int i = 0; i < kWords; ++i)
      words[i] = __funnelshift_r(from[min(j / 32 + i, last)], from[min(j / 32 + i + 1, last)], j % 32);
  }
};

/// The piece of work of a block: a tile of queries or keys of a head of a sequence, and which columns of the output it makes.
struct Work {
  int sequence, head, tile, chunk;
};
/// `heads`: of what the tiles are of; chunks vary fastest, tiles slowest, so that the longest can be first.
__device__ __forceinline__ Work work_of(int sequences, int heads, int chunks) {
  const int of_all = blockIdx.x / chunks, rest = of_all / heads;
  return {rest % sequences, of_all % heads, rest / sequences, static_cast<int>(blockIdx.x % chunks)};
}

}  // namespace attest::portable
