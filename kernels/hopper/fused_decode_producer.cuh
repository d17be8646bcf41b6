// The decode kernel's shared memory, work and producer warp; fused_decode.cu has the contract.
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

/// What warps tell each other of a tile, each part read between two meetings of all of them and written between others; and the
/// queries of a piece.
template <int kHeadDim>
struct DecodeExchange {
  using S = DecodeShape<kHeadDim>;
  float largest[S::kWarps][kRowTile];
  float sums[S::kWarps][2][32];
  __align__(16) char weights[kRowTile * S::kWeightPitch];
  __align__(16) char query[kRowTile * S::kQueryPitch];
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
  __device__ __forceinline__ void init() const {
    for (int slot = 0; slot <= S::kSlots; ++slot)
      full(slot).init(slot < S::kSlots ? 1 : 32), init_for_releases(empty(slot), S::kWarps);
    hopper::publish_barriers();
  }
};

struct DecodeWork {
  int row_tile, kv_head, batch, segment, first_tile, last_tile;
};
/// Neighbours in number share their keys, then differ by head.
__device__ __forceinline__ DecodeWork work_of(const DecodeArgs& a, int number) {
  const int heads_kv = a.problem.heads / a.problem.group, of_all = number / a.row_tiles, rest = of_all / heads_kv;
  DecodeWork w{number % a.row_tiles, of_all % heads_kv, rest % a.problem.batch, rest / a.problem.batch, 0, 0};
  w.first_tile = w.segment * kSegmentTiles;
  w.last_tile = min(w.first_tile + kSegmentTiles, (a.problem.seqlen_kv + kKeyTile - 1) / kKeyTile) - 1;
  return w;
}

/// The head and query of a row of a row tile.
struct DecodeRow {
  int head, query;
  bool exists;
  __device__ __forceinline__ DecodeRow(const Problem& problem, const DecodeWork& w, int in_tile) {
    const int row = kRowTile * w.row_tile + in_tile;
    query = row / problem.group;
    head = w.kv_head * problem.group + row - query * problem.group;
    exists = query < problem.seqlen_q;
  }
};

/// By a whole warp: 16 bytes at a time, zeros past head_dim and for rows that don't exist.
template <int kHeadDim>
__device__ __forceinline__ void copy_query(const DecodeArgs& a, const DecodeWork& w, uint32_t to, hopper::Barrier full) {
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

template <int kHeadDim>
__device__ __forceinline__ void produce_decode(const DecodeArgs& a, const DecodeRing<kHeadDim>& ring, const DecodeExchange<kHeadDim>& exchange) {
  Position<DecodeShape<kHeadDim>::kSlots> at;
  uint32_t freed = 1;  // parity of the queries' slot
  const auto load = [&](const CUtensorMap& map, int tile, const DecodeWork& w) {
    if (threadIdx.x % 32 == 0) {
      ring.empty(at.stage).wait(at.phase ^ 1);
      ring.full(at.stage).arrive_expecting(DecodeShape<kHeadDim>::kTileBytes);
      load_rows<kHeadDim, kKeyTile>(ring.tile(at.stage), map, ring.full(at.stage), tile * kKeyTile, w.kv_head, w.batch);
    }
    at.step();
  };
  for (int number = blockIdx.x; number < a.count; number += gridDim.x, freed ^= 1) {
    const DecodeWork w = work_of(a, number);
    for (int n = w.last_tile; n >= w.first_tile; --n) {
      load(a.k, n, w);
      load(a.v, n, w);
      if (n != w.last_tile) continue;
      __syncwarp();
      ring.query_empty().wait(freed);
      copy_query<kHeadDim>(a, w, hopper::shared_address(exchange.query), ring.query_full());
    }
  }
}

}  // namespace attest::fused
