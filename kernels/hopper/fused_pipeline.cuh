// A block of a backward kernel: how a producer thread and two consumer warpgroups share pieces of work and stages of tiles, one
// tile a stage, two barriers each; and the products that both kernels need.
#pragma once

#include "kernels/hopper/fused_store.cuh"

namespace attest::fused {

/// `kStages` pairs of barriers at `barriers`; a resident operand (Q and dO, or K and V) has a pair of its own after them.
template <int kStages>
struct Pipeline {
  uint32_t barriers;
  volatile int* piece;  // the number of the piece of work; −1: none is left. Valid while the resident operand is.
  static constexpr int kBarriers = 2 * kStages + 2;

  __device__ __forceinline__ hopper::Barrier full(int stage) const { return {barriers + 16 * stage}; }
  __device__ __forceinline__ hopper::Barrier empty(int stage) const { return {barriers + 16 * stage + 8}; }
  __device__ __forceinline__ hopper::Barrier resident_full() const { return full(kStages); }
  __device__ __forceinline__ hopper::Barrier resident_empty() const { return empty(kStages); }
  __device__ __forceinline__ void init(int consumer_warps) const {
    for (int stage = 0; stage <= kStages; ++stage) full(stage).init(1), init_for_releases(empty(stage), consumer_warps);
    hopper::publish_barriers();
  }
};

/// A position in the ring of stages.
template <int kStages>
struct Position {
  int stage = 0;
  uint32_t phase = 0;
  __device__ __forceinline__ void step() {
    if (++stage == kStages) stage = 0, phase ^= 1;
  }
};

/// Two warpgroups take turns in issuing products, so that one's arithmetic runs beside the other's products. Both take as many
/// turns; warpgroup 1 opens with pass(), warpgroup 0 closes with take().
struct Turns {
  int warpgroup;
  __device__ __forceinline__ void take() const { hopper::named_sync(1 + warpgroup, 256); }
  __device__ __forceinline__ void pass() const { hopper::named_arrive(2 - warpgroup, 256); }
};

/// Takes piece after piece; `load(piece)` copies what the consumers need of it.
template <int kStages, class Load>
__device__ __forceinline__ void produce(const WorkList& work, const Pipeline<kStages>& pipeline, Load&& load) {
  uint32_t freed = 1;
  for (int number = blockIdx.x; number < work.count; number = take_next(work)) {
    pipeline.resident_empty().wait(freed);
    freed ^= 1;
    *pipeline.piece = number;
    load(piece_of(work, number));
  }
  pipeline.resident_empty().wait(freed);
  *pipeline.piece = -1;
  pipeline.resident_full().arrive();
}

/// `own(piece)` for each piece that the producer has taken.
template <int kStages, class Own>
__device__ __forceinline__ void consume(const WorkList& work, const Pipeline<kStages>& pipeline, const Turns& turns, Own&& own) {
  if (turns.warpgroup == 1) turns.pass();
  for (uint32_t phase = 0;; phase ^= 1) {
    pipeline.resident_full().wait(phase);
    const int number = __shfl_sync(~0U, threadIdx.x % 32 == 0 ? *pipeline.piece : 0, 0);
    if (number < 0) break;
    own(piece_of(work, number));
  }
  if (turns.warpgroup == 0) turns.take();
}

constexpr int kBackwardThreads = 384;  // a warpgroup for the producer, two that consume

/// The whole of a block. `Producer` and `Consumer` are made from the arguments and Shared; the one loads a piece, the other owns it.
template <class Shared, class Producer, class Consumer, class Args>
__device__ __forceinline__ void run_block(const Args& a) {
  extern __shared__ __align__(1024) char memory[];
  __shared__ __align__(8) uint64_t barriers[decltype(Shared::pipeline)::kBarriers];
  __shared__ int piece;
  const Shared shared(memory, barriers, &piece);
  if (threadIdx.x == 0) shared.pipeline.init(8);
  __syncthreads();
  if (__shfl_sync(~0U, threadIdx.x / 128, 0) == 0) {
    hopper::give_up_registers<24>();
    if (threadIdx.x == 0) produce(a.work, shared.pipeline, Producer{a, shared});
  } else {
    hopper::take_registers<240>();
    Consumer consumer(a, shared, threadIdx.x - 128);
    consume(a.work, shared.pipeline, consumer.turns, consumer);
  }
}

/// A box of `kBoxRows` rows and every 64 columns of an operand, one block of kBoxRows × 64 after the other.
template <int kHeadDim, int kBoxRows>
__device__ __forceinline__ void load_rows(uint32_t to, const CUtensorMap& map, hopper::Barrier full, int row, int head,
                                          int batch) {
#pragma unroll
  for (int half = 0; half < kHeadDim / 64; ++half)
    hopper::load_box(to + half * kBoxRows * 128, map, full, 64 * half, row, head, batch);
}

/// D = A · Bᵀ over the head dim: A [64, D] in a block of kARows rows, B in one of kBRows.
template <class Element, int kHeadDim, int kARows, int kBRows, int kSize>
__device__ __forceinline__ void multiply_rows(float (&d)[kSize], uint64_t a, uint64_t b) {
#pragma unroll
  for (int k = 0; k < kHeadDim / 16; ++k)
    hopper::multiply<Element>(d, hopper::advance(a, k / 4 * kARows * 128 + k % 4 * 32),
                              hopper::advance(b, k / 4 * kBRows * 128 + k % 4 * 32), k > 0);
}
/// D += A · B over the rows of B [2·kSize/…, D]: A in registers.
template <class Element, int kRegisters, int kSize>
__device__ __forceinline__ void accumulate(float (&d)[kSize], const uint32_t (&a)[kRegisters], uint64_t b) {
#pragma unroll
  for (int k = 0; k < kRegisters / 4; ++k) hopper::multiply_add<Element>(d, a + 4 * k, hopper::advance(b, k * 16 * 128));
}

__device__ __forceinline__ float2 load_pair(uint32_t address) {
  float2 x;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x.x), "=f"(x.y) : "r"(address));
  return x;
}
__device__ __forceinline__ float load_float(uint32_t address) {
  float x;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(address));
  return x;
}

}  // namespace attest::fused
