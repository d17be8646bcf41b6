// What the kernels for few queries of both operators share: a block's memory, its work, and the producer warp. fused_decode.cu and
// stick_decode.cu have the contracts; fused_decode_warp.cuh has what their other warps share.
#pragma once

#include "kernels/hopper/fused_decode.h"
#include "kernels/hopper/fused_pipeline.cuh"

namespace attest::fused {

constexpr int kRowTile = 16;  // rows: the queries of a KV head's group; query i of the group's head g is row i · group + g

template <int kHeadDim>
struct DecodeShape {
  static constexpr int kWarps = 4, kThreads = 32 * (kWarps + 1);
  static constexpr int kTileBytes = kKeyTile * kHeadDim * 2, kSlots = kHeadDim == 64 ? 12 : 6;
  static constexpr int kSharedBytes = 1024 + kSlots * kTileBytes;
  static constexpr int kColumns = kHeadDim / kWarps;     // of a warp
  static constexpr int kQueryPitch = 2 * kHeadDim + 16;  // bytes; 8 rows lie in different banks, as of the weights
  static constexpr int kWeightPitch = 2 * kKeyTile + 16;
};

/// Slots for tiles, of keys and of values in turn, and one for queries.
template <int kHeadDim>
struct DecodeRing {
  using S = DecodeShape<kHeadDim>;
  uint32_t tiles, barriers;
  static constexpr int kBarriers = 2 * S::kSlots + 2;

  __device__ __forceinline__ uint32_t tile(int slot) const { return tiles + slot * S::kTileBytes; }
  __device__ __forceinline__ hopper::Barrier full(int slot) const { return {barriers + 16 * slot}; }
  __device__ __forceinline__ hopper::Barrier empty(int slot) const { return {barriers + 16 * slot + 8}; }
  __device__ __forceinline__ hopper::Barrier query_full() const { return full(S::kSlots); }
  __device__ __forceinline__ hopper::Barrier query_empty() const { return empty(S::kSlots); }
  __device__ __forceinline__ void init(int query_arrivals = 32) const {
    for (int slot = 0; slot <= S::kSlots; ++slot)
      full(slot).init(slot < S::kSlots ? 1 : query_arrivals), init_for_releases(empty(slot), S::kWarps);
    hopper::publish_barriers();
  }
};

struct DecodeWork {
  int row_tile, kv_head, batch, segment, first_tile, last_tile;
};
/// The head and query of a row of a row tile.
struct DecodeRow {
  int head, query;
  bool exists;
  template <class Problem>
  __device__ __forceinline__ DecodeRow(const Problem& problem, const DecodeWork& w, int in_tile) {
    const int row = kRowTile * w.row_tile + in_tile;
    query = row / problem.group;
    head = w.kv_head * problem.group + row - query * problem.group;
    exists = query < problem.seqlen_q;
  }
};

/// By a whole warp: 16 bytes at a time, zeros past head_dim and for rows that don't exist.
template <int kHeadDim, class Args>
__device__ __forceinline__ void copy_query(const Args& a, const DecodeWork& w, uint32_t to, hopper::Barrier full) {
  constexpr int kPieces = kHeadDim / 8;  // of a row
  const int column = threadIdx.x % kPieces * 8, bytes = min(16, max(0, 2 * (a.problem.head_dim - column)));
#pragma unroll 1
  for (int r = threadIdx.x % 32 / kPieces; r < kRowTile; r += 32 / kPieces) {
    const DecodeRow row(a.problem, w, r);
    const uint16_t* from = row.exists && bytes > 0 ? a.q + a.q_strides.at(w.batch, row.head, row.query) + column : a.q;
    hopper::copy_16(to + r * DecodeShape<kHeadDim>::kQueryPitch + 2 * column, from, row.exists ? bytes : 0);
  }
  hopper::arrive_after_copies(full);
}

/// Piece after piece. `load(map, tile, slot, work)`, by one lane, has a tile copied; `begins(work, number)`, by the whole warp, says
/// whether a piece is to be worked at all; `announce(number)` tells the consumers before they get its queries at `query`. Returns the
/// parity with which the queries' slot is free.
template <int kHeadDim, class Args, class Load, class Begins, class Announce>
__device__ __forceinline__ uint32_t produce_decode(const Args& a, const DecodeRing<kHeadDim>& ring, const char* query, Load&& load,
                                                   Begins&& begins, Announce&& announce) {
  Position<DecodeShape<kHeadDim>::kSlots> at;
  uint32_t freed = 1;  // parity of the queries' slot
  const auto load_next = [&](const CUtensorMap& map, int tile, const DecodeWork& w) {
    if (threadIdx.x % 32 == 0) {
      ring.empty(at.stage).wait(at.phase ^ 1);
      ring.full(at.stage).arrive_expecting(DecodeShape<kHeadDim>::kTileBytes);
      load(map, tile, at.stage, w);
    }
    at.step();
  };
  for (int number = blockIdx.x; number < a.count; number += gridDim.x) {
    const DecodeWork w = work_of(a, number);
    if (!begins(w, number)) continue;
    for (int n = w.last_tile; n >= w.first_tile; --n) {
      load_next(a.k, n, w);
      load_next(a.v, n, w);
      if (n != w.last_tile) continue;
      __syncwarp();
      ring.query_empty().wait(freed);
      freed ^= 1;
      announce(number);
      copy_query<kHeadDim>(a, w, hopper::shared_address(query), ring.query_full());
    }
  }
  return freed;
}

}  // namespace attest::fused
