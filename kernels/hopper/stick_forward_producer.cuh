// The forward kernel's shared memory, and its producer warp; stick_forward.cu has the contract.
#pragma once

#include "kernels/hopper/stick_kernels.h"
#include "kernels/hopper/stick_load.cuh"

namespace attest::stick {

using hopper::Barrier;

template <int kHeadDim>
struct ForwardShape {
  static constexpr int kWarpgroups = kHeadDim == 64 ? 3 : 2, kRows = 64 * kWarpgroups, kConsumers = 128 * kWarpgroups;
  static constexpr int kThreads = kConsumers + 128, kStages = 2;
  static constexpr int kProducerRegisters = kWarpgroups == 3 ? 32 : 40, kConsumerRegisters = kWarpgroups == 3 ? 160 : 232;
  static constexpr int kQueryBytes = kRows * kHeadDim * 2, kTileBytes = kKeyTile * kHeadDim * 2,
                       kTotalBytes = kRows * kHeadDim * 4;
  static constexpr int kSharedBytes = 1024 + kQueryBytes + 2 * kStages * kTileBytes + kTotalBytes;
  static constexpr int kBarriers = 2 + 4 * kStages;
};

/// Words that producer and consumers leave for each other.
struct ForwardNotes {
  int piece;    // what the consumers work on next; −1: nothing. Valid from query_full to query_empty.
  int stop;     // how many pieces had been begun when the last one was found to need no more tiles
  int last[2];  // of a stage: it holds no tile, and none follows for this piece
};

template <int kHeadDim>
struct ForwardShared {
  using S = ForwardShape<kHeadDim>;
  uint32_t query, keys, values;
  float4* totals;
  Barrier query_full, query_empty;
  uint32_t barriers;
  volatile ForwardNotes* notes;

  __device__ __forceinline__ ForwardShared(char* memory, uint64_t* barrier_memory, ForwardNotes* note_memory)
      : query((hopper::shared_address(memory) + 1023) & ~1023U),
        keys(query + S::kQueryBytes),
        values(keys + S::kStages * S::kTileBytes),
        totals(reinterpret_cast<float4*>(memory + (query - hopper::shared_address(memory)) + S::kQueryBytes +
                                         2 * S::kStages * S::kTileBytes)),
        query_full{hopper::shared_address(barrier_memory)},
        query_empty{query_full.address + 8},
        barriers(query_full.address + 16),
        notes(note_memory) {}
  __device__ __forceinline__ Barrier key_full(int stage) const { return {barriers + 8 * stage}; }
  __device__ __forceinline__ Barrier key_empty(int stage) const { return {barriers + 8 * (S::kStages + stage)}; }
  __device__ __forceinline__ Barrier value_full(int stage) const { return {barriers + 8 * (2 * S::kStages + stage)}; }
  __device__ __forceinline__ Barrier value_empty(int stage) const { return {barriers + 8 * (3 * S::kStages + stage)}; }
  __device__ __forceinline__ void init() const {
    constexpr int kWarps = S::kWarpgroups * 4;
    query_full.init(1);
    fused::init_for_releases(query_empty, kWarps);
    for (int stage = 0; stage < S::kStages; ++stage) {
      key_full(stage).init(1), value_full(stage).init(1);
      fused::init_for_releases(key_empty(stage), kWarps), fused::init_for_releases(value_empty(stage), kWarps);
    }
    notes->stop = 0;
    hopper::publish_barriers();
  }
};

template <int kHeadDim>
struct ForwardProducer {
  using S = ForwardShape<kHeadDim>;
  const ForwardArgs& a;
  const ForwardShared<kHeadDim>& shared;
  int tile = 0, pieces = 0;  // put into the ring so far; begun so far

  __device__ __forceinline__ int begin_tile() {
    const int stage = tile % S::kStages;
    shared.key_empty(stage).wait(tile / S::kStages % 2 ^ 1);
    return stage;
  }

  /// Tells the consumers, who have stopped, that they have seen everything that was sent for this piece.
  __device__ __forceinline__ void end_early(int stage) {
    shared.value_empty(stage).wait(tile / S::kStages % 2 ^ 1);
    shared.notes->last[stage] = 1;
    shared.value_full(stage).arrive();
    shared.key_full(stage).arrive();
    ++tile;
  }

  __device__ __forceinline__ void load_query(const Piece& piece, int number, int batch, int head) {
    shared.query_empty.wait(pieces % 2 ^ 1);
    shared.notes->piece = number;
    shared.query_full.arrive_expecting(S::kQueryBytes);
#pragma unroll
    for (int half = 0; half < kHeadDim / 64; ++half)
      hopper::load_box(shared.query + half * S::kRows * 128, a.q, shared.query_full, 64 * half, piece.index * S::kRows, head,
                       batch);
  }

  /// The number of the next piece.
  __device__ __forceinline__ int produce(int number) {
    const Piece piece = fused::piece_of(a.work, number);
    const int batch = piece.head / a.problem.heads, head = piece.head % a.problem.heads, kv_head = head / a.problem.group;
    const int tiles = visible_tiles(a.problem, piece.index * S::kRows + S::kRows - 1, kKeyTile);
    int next = -1;
    for (int n = tiles - 1; n >= 0; --n, ++tile) {
      if (n == min(tiles - 1, 1)) next = fused::take_next(a.work);  // late: whoever is free takes it; early: nobody waits for it
      const int stage = begin_tile();
      if (shared.notes->stop == pieces + 1) {
        end_early(stage);
        break;
      }
      shared.notes->last[stage] = 0;
      shared.key_full(stage).arrive_expecting(S::kTileBytes);
      load_keys<kHeadDim, kKeyTile, 4>(shared.keys + stage * S::kTileBytes, a.k, shared.key_full(stage), n * kKeyTile, kv_head,
                                       batch);
      if (n == tiles - 1) load_query(piece, number, batch, head);
      shared.value_empty(stage).wait(tile / S::kStages % 2 ^ 1);
      shared.value_full(stage).arrive_expecting(S::kTileBytes);
      load_keys<kHeadDim, kKeyTile, 4>(shared.values + stage * S::kTileBytes, a.v, shared.value_full(stage), n * kKeyTile, kv_head,
                                       batch);
    }
    return next >= 0 ? next : fused::take_next(a.work);
  }

  __device__ __forceinline__ void produce_all() {
    for (int number = blockIdx.x; number < a.work.count; ++pieces) number = produce(number);
    shared.query_empty.wait(pieces % 2 ^ 1);
    shared.notes->piece = -1;
    shared.query_full.arrive();
  }
};

}  // namespace attest::stick
