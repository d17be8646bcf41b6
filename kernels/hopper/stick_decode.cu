// stickbreaking.cuda.decode: a block works out what one segment of 512 keys leaves for 16 rows, the queries of a KV head's group, and
// takes such pieces of work in turns, the nearest segments first; stick_combine.cu does the rest. Contract: stick_forward.cu, whose
// products and sums these are in the same order. A tile's scores are cut by keys (warp w: sub-tile w), its values by columns, so that
// four warps share a tile; they tell each other what their sub-tiles leave of the stick. One more warp copies.
//
// Keys come permuted by the copy engine: row 32b + 8u + n of a tile is key 32u + 4n + b. Values of hidden keys are read as 0 (the lane
// gives ldmatrix the address of zeros), so nothing that lies in the cache past a length reaches a sum.
//
// A row tile whose rows have all used up their stick within a segment that a block has worked needs no farther segment of that
// block's: it leaves exact zeros for these, as it would anyway, without reading keys.
#include "kernels/hopper/fused_decode_warp.cuh"
#include "kernels/hopper/stick_decode_kernels.h"
#include "kernels/hopper/stick_scan.cuh"

namespace attest::stick {

using fused::DecodeWork;

/// Neighbours in number share their keys, then differ by head; the nearest segments come first. No tiles: nothing is there.
__device__ __forceinline__ DecodeWork work_of(const DecodeArgs& a, int number) {
  const int heads_kv = a.problem.heads / a.problem.group, of_all = number / a.row_tiles, rest = of_all / heads_kv;
  DecodeWork w{number % a.row_tiles, of_all % heads_kv, rest % a.problem.batch, 0, 0, -1};
  const int length = length_of(a.problem, a.seqlens_kv, w.batch);
  w.segment = segments_of(length) - 1 - rest / a.problem.batch;
  if (w.segment < 0) return w;
  w.first_tile = w.segment * kSegmentTiles;
  w.last_tile = min(w.first_tile + kSegmentTiles, (length + kKeyTile - 1) / kKeyTile) - 1;
  return w;
}

namespace {

template <int kHeadDim>
using Shape = fused::DecodeShape<kHeadDim>;
template <int kHeadDim>
using Ring = fused::DecodeRing<kHeadDim>;
using Row = fused::DecodeRow;

constexpr int kRowTile = fused::kRowTile;
constexpr int kNoted = 1024;  // row tiles of all heads that a block can note as used up

template <int kHeadDim>
struct Exchange {
  using S = Shape<kHeadDim>;
  float left[S::kWarps][kRowTile];  // of the stick, by a sub-tile
  uint32_t used_up[kNoted / 32];    // bits
  int piece;                        // −1: none follows. Valid with the queries.
  __align__(16) char zeros[16];
  __align__(16) char weights[kRowTile * S::kWeightPitch];
  __align__(16) char query[kRowTile * S::kQueryPitch];
};

__device__ __forceinline__ int64_t row_number(const Problem& p, const DecodeWork& w, const Row& r) {
  return (int64_t{w.batch} * p.heads + r.head) * p.seqlen_q + r.query;
}
__device__ __forceinline__ int row_tile_number(const DecodeArgs& a, int number) {
  return number % (a.row_tiles * (a.problem.heads / a.problem.group) * a.problem.batch);
}

template <class Element, int kHeadDim>
struct Consumer : fused::DecodeWarp<kHeadDim> {
  using S = Shape<kHeadDim>;
  using Base = fused::DecodeWarp<kHeadDim>;
  using Base::ring, Base::warp, Base::lane, Base::at;
  const DecodeArgs& a;
  Exchange<kHeadDim>& exchange;
  float s[16], o[S::kColumns / 2];
  float stick[2];
  uint32_t seen[kKeyTile / 32];  // bits of a tile's keys: within the length and kept
  bool upper;                    // whether the row tile has more than 8 rows; if not, what the other 8 hold is never used

  __device__ __forceinline__ Consumer(const DecodeArgs& args, const Ring<kHeadDim>& r, Exchange<kHeadDim>& e)
      : Base(r), a(args), exchange(e) {}

  __device__ __forceinline__ void find_seen(const DecodeWork& w, int first_key, int length) {
#pragma unroll
    for (int u = 0; u < kKeyTile / 32; ++u) {
      const int key = first_key + 32 * u + lane;
      bool is_seen = key < length;
      if (is_seen && a.keep.data != nullptr) is_seen = a.keep.data[w.batch * a.keep.of_batch + key * a.keep.of_key] != 0;
      seen[u] = __ballot_sync(~0U, is_seen);
    }
  }
  __device__ __forceinline__ uint32_t seen_of_warp() const {
    return warp < 2 ? warp == 0 ? seen[0] : seen[1] : warp == 2 ? seen[2] : seen[3];
  }

  __device__ __forceinline__ void hide_unseen(const int (&last)[2], int first_key) {
    if (first_key + 31 > __shfl_sync(~0U, last[0], 0)) hide<4>(s, last, first_key, lane % 4);
    const uint32_t words[1] = {seen_of_warp()};
    if (words[0] != ~0U) hide_padded<4>(s, words, lane % 4);
  }

  /// Row h's scores → shares within the sub-tile, but for the nearer lanes'; returns these lanes' part.
  template <int h>
  __device__ __forceinline__ float break_row() {
    float run[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) run[i] = s[i % 4 * 4 + 2 * h + i / 4];
    const QuadProduct quad = quad_product(break_run(run, a.problem.logit_scale), lane % 4);
#pragma unroll
    for (int i = 0; i < 8; ++i) s[i % 4 * 4 + 2 * h + i / 4] = run[i];
    if (lane % 4 == 0) exchange.left[warp][lane / 4 + 8 * h] = quad.all;
    return quad.nearer;
  }
  template <int h>
  __device__ __forceinline__ void leave_weights(float nearer) {
    const int row = lane / 4 + 8 * h;
    float before = stick[h];
#pragma unroll
    for (int u = S::kWarps - 1; u >= 0; --u) {
      if (u == warp) before = stick[h];
      stick[h] *= exchange.left[u][row];
    }
    const float factor = before * nearer * kWeightScale<Element>;
    char* weights = exchange.weights + row * S::kWeightPitch + 2 * (32 * warp + 2 * (lane % 4));
#pragma unroll
    for (int b = 0; b < 4; ++b)
      *reinterpret_cast<uint32_t*>(weights + 16 * b) =
          hopper::pack<Element>(s[4 * b + 2 * h] * factor, s[4 * b + 2 * h + 1] * factor);
  }

  __device__ __forceinline__ void add_tile() {
    const uint32_t tile = ring.tile(at.stage), zeros = hopper::shared_address(exchange.zeros);
    const int n = lane % 8, upper_half = lane / 8 % 2;
#pragma unroll
    for (int i = 0; i < kKeyTile / 16; ++i) {
      const int k = i ^ 6, b = k % 2 * 2 + upper_half;  // the nearest sub-tile first
      const bool is_seen = seen[k / 2] >> (4 * n + b) & 1;
      const int row = 32 * b + 8 * (k / 2) + n;
      this->template add_values<Element>(o, exchange.weights, k,
                                         [&](int chunk) { return is_seen ? tile + fused::in_tile(row, chunk) : zeros; });
    }
  }

  __device__ __forceinline__ void step(const DecodeWork& w, const int (&last)[2], int tile, int length) {
    const int first_key = tile * kKeyTile;
    find_seen(w, first_key, length);
    ring.full(at.stage).wait(at.phase);
    this->template score<Element>(s, lane / 16 * 32 + 8 * warp + lane % 8, 64);
    this->release_tile();
    hide_unseen(last, first_key + 32 * warp);
    const float nearer0 = break_row<0>(), nearer1 = upper ? break_row<1>() : 1.0F;
    this->meet_warps();
    leave_weights<0>(nearer0);
    if (upper) leave_weights<1>(nearer1);
    this->meet_warps();
    ring.full(at.stage).wait(at.phase);
    add_tile();
    this->release_tile();
  }

  __device__ __forceinline__ void leave(const DecodeWork& w, int h, const Row& r) const {
    if (!r.exists) return;
    const int64_t row = row_number(a.problem, w, r);
    if (warp == 0 && lane % 4 == 0) *a.partials.stick_at(row, w.segment) = stick[h];
    this->leave_columns(o, h, a.partials.at(row, w.segment), a.partials.pitch);
  }
  __device__ __forceinline__ void note_used_up(int row_tile, bool row0_exists, bool row1_exists) {
    const bool used_up = (!row0_exists || stick[0] == 0.0F) && (!row1_exists || stick[1] == 0.0F);
    if (__all_sync(~0U, used_up) && threadIdx.x == 0 && row_tile < kNoted)
      atomicOr(&exchange.used_up[row_tile / 32], 1U << row_tile % 32);
  }

  __device__ __forceinline__ void attend(int number) {
    const DecodeWork w = work_of(a, number);
    const Row rows[2] = {Row(a.problem, w, lane / 4), Row(a.problem, w, lane / 4 + 8)};
    const int length = length_of(a.problem, a.seqlens_kv, w.batch), moved = length - a.problem.seqlen_kv;
    const int last[2] = {last_visible(a.problem, rows[0].query) + moved, last_visible(a.problem, rows[1].query) + moved};
    upper = a.problem.group * a.problem.seqlen_q > kRowTile * w.row_tile + 8;
    stick[0] = stick[1] = 1.0F;
    fused::clear(o);
#pragma unroll 1
    for (int n = w.last_tile; n >= w.first_tile; --n) step(w, last, n, length);
    leave(w, 0, rows[0]);
    leave(w, 1, rows[1]);
    note_used_up(row_tile_number(a, number), rows[0].exists, rows[1].exists);
  }
  __device__ __forceinline__ void consume() {
    for (;;) {
      ring.query_full().wait(this->filled);
      const int number = exchange.piece;
      if (number < 0) return;
      this->load_query(exchange.query);
      attend(number);
    }
  }
};

template <int kHeadDim>
struct Producer {
  const DecodeArgs& a;
  const Ring<kHeadDim>& ring;
  Exchange<kHeadDim>& exchange;

  __device__ __forceinline__ void load(const CUtensorMap& map, int tile, int slot, const DecodeWork& w) const {
#pragma unroll
    for (int half = 0; half < kHeadDim / 64; ++half)
#pragma unroll
      for (int b = 0; b < 4; ++b)
        hopper::load_box(ring.tile(slot) + half * kKeyTile * 128 + b * 32 * 128, map, ring.full(slot), 64 * half,
                         tile * kKeyTile + b, w.kv_head, w.batch);
  }
  /// By the whole warp: what a segment leaves once nothing of the stick is left.
  __device__ __forceinline__ void leave_zeros(const DecodeWork& w) const {
    for (int r = 0; r < kRowTile; ++r) {
      const Row row(a.problem, w, r);
      if (!row.exists) return;
      const int64_t number = row_number(a.problem, w, row);
      float* to = a.partials.at(number, w.segment);
      for (int i = threadIdx.x % 32; i < a.partials.pitch; i += 32) to[i] = 0.0F;
      if (threadIdx.x % 32 == 0) *a.partials.stick_at(number, w.segment) = 0.0F;
    }
  }
  __device__ __forceinline__ bool begins(const DecodeWork& w, int number) const {
    if (w.last_tile < w.first_tile) return false;
    const int row_tile = row_tile_number(a, number);
    if (row_tile >= kNoted) return true;
    const uint32_t used_up = threadIdx.x % 32 == 0 ? atomicOr(&exchange.used_up[row_tile / 32], 0U) : 0U;
    if (!(__shfl_sync(~0U, used_up, 0) >> row_tile % 32 & 1)) return true;
    leave_zeros(w);
    return false;
  }
  /// One lane arrives for this, beside those that have copied queries.
  __device__ __forceinline__ void announce(int number) const {
    if (threadIdx.x % 32 != 0) return;
    exchange.piece = number;
    ring.query_full().arrive();
  }
  __device__ __forceinline__ void produce() const {
    const uint32_t freed = fused::produce_decode<kHeadDim>(
        a, ring, exchange.query,
        [&](const CUtensorMap& map, int tile, int slot, const DecodeWork& w) { load(map, tile, slot, w); },
        [&](const DecodeWork& w, int number) { return begins(w, number); }, [&](int number) { announce(number); });
    ring.query_empty().wait(freed);
    announce(-1);
    ring.query_full().arrive();
  }
};

template <class Element, int kHeadDim>
__global__ void __launch_bounds__(Shape<kHeadDim>::kThreads, 1) decode_kernel(const __grid_constant__ DecodeArgs a) {
  extern __shared__ __align__(1024) char memory[];
  __shared__ __align__(8) uint64_t barriers[Ring<kHeadDim>::kBarriers];
  __shared__ Exchange<kHeadDim> exchange;
  hopper::launch_dependents();
  const Ring<kHeadDim> ring{(hopper::shared_address(memory) + 1023) & ~1023U, hopper::shared_address(barriers)};
  if (threadIdx.x == 0) ring.init(33);
  if (threadIdx.x < 4) reinterpret_cast<uint32_t*>(exchange.zeros)[threadIdx.x] = 0;
  if (threadIdx.x < kNoted / 32) exchange.used_up[threadIdx.x] = 0;
  __syncthreads();
  if (threadIdx.x < 32 * Shape<kHeadDim>::kWarps)
    Consumer<Element, kHeadDim>(a, ring, exchange).consume();
  else
    Producer<kHeadDim>{a, ring, exchange}.produce();
}

template <class Element, int kHeadDim>
KernelInfo decode_info() {
  using S = Shape<kHeadDim>;
  return {.function = reinterpret_cast<const void*>(decode_kernel<Element, kHeadDim>),
          .name = "stick-breaking decode",
          .threads = S::kThreads,
          .shared_bytes = S::kSharedBytes,
          .rows = kRowTile};
}

}  // namespace

KernelInfo decode_kernel_of(ElementType type, int padded_head_dim) {
  const bool half = type == ElementType::kFloat16;
  if (padded_head_dim == 64) return half ? decode_info<__half, 64>() : decode_info<__nv_bfloat16, 64>();
  return half ? decode_info<__half, 128>() : decode_info<__nv_bfloat16, 128>();
}

}  // namespace attest::stick
