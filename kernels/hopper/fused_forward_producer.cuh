// The forward kernel's shared memory, and its producer warp; fused_forward.cu has the contract.
#pragma once

#include "kernels/hopper/fused_kernels.h"

namespace attest::fused {

template <int kHeadDim>
struct ForwardShape {
  static constexpr int kWarpgroups = kHeadDim == 64 ? 3 : 2, kRows = 64 * kWarpgroups, kConsumers = 128 * kWarpgroups;
  static constexpr int kThreads = kConsumers + 128, kStages = 2;
  static constexpr int kProducerRegisters = kWarpgroups == 3 ? 32 : 40, kConsumerRegisters = kWarpgroups == 3 ? 160 : 232;
  static constexpr int kQueryBytes = kRows * kHeadDim * 2, kTileBytes = kKeyTile * kHeadDim * 2,
                       kTotalBytes = kRows * kHeadDim * 4;
  static constexpr int kSharedBytes = 1024 + kQueryBytes + 2 * kStages * kTileBytes + kTotalBytes;
};

template <int kHeadDim>
struct ForwardShared {
  using S = ForwardShape<kHeadDim>;
  uint32_t query, keys, values;
  float4* totals;
  hopper::Barrier query_full, query_empty;
  uint32_t barriers;
  volatile int* piece;  // what the consumers work on next; −1: nothing. Valid from query_full to query_empty.

  __device__ __forceinline__ ForwardShared(char* memory, uint64_t* barrier_memory, int* piece_memory)
      : query((hopper::shared_address(memory) + 1023) & ~1023U),
        keys(query + S::kQueryBytes),
        values(keys + S::kStages * S::kTileBytes),
        totals(reinterpret_cast<float4*>(memory + (query - hopper::shared_address(memory)) + S::kQueryBytes +
                                         2 * S::kStages * S::kTileBytes)),
        query_full{hopper::shared_address(barrier_memory)},
        query_empty{query_full.address + 8},
        barriers(query_full.address + 16),
        piece(piece_memory) {}
  __device__ __forceinline__ hopper::Barrier key_full(int stage) const { return {barriers + 8 * stage}; }
  __device__ __forceinline__ hopper::Barrier key_empty(int stage) const { return {barriers + 8 * (S::kStages + stage)}; }
  __device__ __forceinline__ hopper::Barrier value_full(int stage) const { return {barriers + 8 * (2 * S::kStages + stage)}; }
  __device__ __forceinline__ hopper::Barrier value_empty(int stage) const { return {barriers + 8 * (3 * S::kStages + stage)}; }
  __device__ __forceinline__ void init() const {
    constexpr int kWarps = S::kWarpgroups * 4;
    query_full.init(1);
    init_for_releases(query_empty, kWarps);
    for (int stage = 0; stage < S::kStages; ++stage) {
      key_full(stage).init(1), value_full(stage).init(1);
      init_for_releases(key_empty(stage), kWarps), init_for_releases(value_empty(stage), kWarps);
    }
    hopper::publish_barriers();
  }
};

/// The first key of the tile that is taken when n more are to come.
__device__ __forceinline__ int first_key_of(int n, int tiles) {
  return (kDefect == Defect::kTilesByBlock && blockIdx.x % 2 == 1 ? tiles - 1 - n : n) * kKeyTile;
}

template <int kHeadDim, int kBoxRows>
__device__ __forceinline__ void load_tile(uint32_t to, const CUtensorMap& map, hopper::Barrier full, int row, int head,
                                          int batch) {
  full.arrive_expecting(kBoxRows * kHeadDim * 2);
#pragma unroll
  for (int half = 0; half < kHeadDim / 64; ++half)
    hopper::load_box(to + half * kBoxRows * 128, map, full, 64 * half, row, head, batch);
}

/// A piece of work: a block of queries and the tiles [first, end) of keys, at least one. leaves_segments: nearer ones are elsewhere.
struct Span {
  int block, first, end;
  bool leaves_segments;
};
template <bool kSplit>
__device__ __forceinline__ Span span_of(const ForwardArgs& a, const Piece& piece, int rows) {
  const int block = kSplit ? piece.index / a.ranges : piece.index;
  const int end = visible_tiles(a.problem, block * rows + rows - 1, kKeyTile);
  if (!kSplit) return {block, 0, end, false};
  const int first = piece.index % a.ranges * a.range_tiles, end_of_range = first + a.range_tiles;
  return {block, first, max(min(end, end_of_range), first + 1), end_of_range < end};
}

template <bool kSplit, int kHeadDim>
__device__ __forceinline__ void produce_forward(const ForwardArgs& a, const ForwardShared<kHeadDim>& shared) {
  using S = ForwardShape<kHeadDim>;
  int tile = 0, pieces = 0;
  for (int number = blockIdx.x; number < a.work.count; ++pieces) {
    int next = 0;
    const Piece piece = piece_of(a.work, number);
    const int batch = piece.head / a.problem.heads, head = piece.head % a.problem.heads, kv_head = head / a.problem.group;
    const Span span = span_of<kSplit>(a, piece, S::kRows);
    for (int n = span.end - 1; n >= span.first; --n, ++tile) {
      if (n == min(span.end - 1, span.first + 1)) next = take_next(a.work);  // late: whoever is free takes it; early: nobody waits for it
      const int stage = tile % S::kStages, key = first_key_of(n, span.end);
      const uint32_t freed = tile / S::kStages % 2 ^ 1;
      shared.key_empty(stage).wait(freed);
      load_tile<kHeadDim, kKeyTile>(shared.keys + stage * S::kTileBytes, a.k, shared.key_full(stage), key, kv_head,
                                    batch);
      if (n == span.end - 1) {
        shared.query_empty.wait(pieces % 2 ^ 1);
        *shared.piece = number;
        load_tile<kHeadDim, S::kRows>(shared.query, a.q, shared.query_full, span.block * S::kRows, head, batch);
      }
      shared.value_empty(stage).wait(freed);
      load_tile<kHeadDim, kKeyTile>(shared.values + stage * S::kTileBytes, a.v, shared.value_full(stage), key, kv_head,
                                    batch);
    }
    number = next;
  }
  shared.query_empty.wait(pieces % 2 ^ 1);
  *shared.piece = -1;
  shared.query_full.arrive();
}

}  // namespace attest::fused
