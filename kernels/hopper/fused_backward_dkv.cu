// softmax.cuda.fused, dk and dv. A block owns 128 keys of a KV head, 64 a warpgroup; it works on the transposed problem,
// Sᵀ = K·Qᵀ and dPᵀ = V·dOᵀ, so that Pᵀ and dzᵀ are in registers as the next products need them.
//
// Reduction contract. A key is owned by one warpgroup. dv_j = Σ P_ij dout_i and dk_j = |scale| · Σ dz_ij q_i (q has the scale's
// sign): one sum each, over the group's query heads ascending, in a head over tiles of 64 queries cut at multiples of 64 of the
// query's index in its sequence, ascending, in a tile by k16 products, queries ascending. P_ij = 2^(c·s_ij − lse2_i) and
// dz_ij = P_ij ((dP_ij − r_i) + e_i), with the exact e_i of fused_backward_dq.cu, both rounded to the element type. Queries that
// don't see the key add exact zeros.
#include "kernels/hopper/fused_backward.h"
#include "kernels/hopper/fused_pipeline.cuh"

namespace attest::fused {
namespace {

template <int kHeadDim>
struct Shape {
  static constexpr int kKeys = 128, kStages = 3;
  static constexpr int kResident = kKeys * kHeadDim * 2, kTile = kQueryTile * kHeadDim * 2, kRowBytes = 3 * kQueryTile * 4;
  static constexpr int kStageBytes = 2 * kTile, kSharedBytes = 1024 + 2 * kResident + kStages * (kStageBytes + kRowBytes);
};

template <int kHeadDim>
struct Shared {
  using S = Shape<kHeadDim>;
  uint32_t k, v, tiles, rows;
  Pipeline<S::kStages> pipeline;
  __device__ __forceinline__ Shared(const char* memory, const uint64_t* barriers, volatile int* piece)
      : k((hopper::shared_address(memory) + 1023) & ~1023U),
        v(k + S::kResident),
        tiles(v + S::kResident),
        rows(tiles + S::kStages * S::kStageBytes),
        pipeline{hopper::shared_address(barriers), piece} {}
};

/// The first tile of queries that may see `key`, and the number of tiles of a head.
__device__ __forceinline__ int first_tile(const Problem& p, int key) {
  return p.causal ? max(key - (p.seqlen_kv - p.seqlen_q), 0) / kQueryTile : 0;
}
__device__ __forceinline__ int tiles_of_head(const Problem& p) { return (p.seqlen_q + kQueryTile - 1) / kQueryTile; }

template <int kHeadDim>
struct Producer {
  using S = Shape<kHeadDim>;
  const BackwardArgs& a;
  const Shared<kHeadDim>& sh;
  Position<S::kStages> at{};

  __device__ __forceinline__ void load_queries(int tile, int head, int batch) {
    const hopper::Barrier full = sh.pipeline.full(at.stage);
    const uint32_t to = sh.tiles + at.stage * S::kStageBytes, rows = sh.rows + at.stage * S::kRowBytes;
    const int row = tile * kQueryTile;
    const int64_t first = static_cast<int64_t>(batch * a.problem.heads + head) * a.rows.padded_rows + row;
    sh.pipeline.empty(at.stage).wait(at.phase ^ 1);
    full.arrive_expecting(S::kStageBytes + S::kRowBytes);
    load_rows<kHeadDim, kQueryTile>(to, a.q, full, row, head, batch);
    load_rows<kHeadDim, kQueryTile>(to + S::kTile, a.dout, full, row, head, batch);
    hopper::load_bytes(rows, a.rows.lse2 + first, kQueryTile * 4, full);
    hopper::load_bytes(rows + kQueryTile * 4, a.rows.reference + first, kQueryTile * 4, full);
    hopper::load_bytes(rows + 2 * kQueryTile * 4, a.rows.shift + first, kQueryTile * 4, full);
    at.step();
  }
  __device__ __forceinline__ void operator()(const Piece& piece) {
    const int group = a.problem.group, kv_heads = a.problem.heads / group, key = piece.index * S::kKeys;
    const int batch = piece.head / kv_heads, kv_head = piece.head % kv_heads;
    const hopper::Barrier ready = sh.pipeline.resident_full();
    ready.arrive_expecting(2 * S::kResident);
    load_rows<kHeadDim, S::kKeys>(sh.k, a.k, ready, key, kv_head, batch);
    load_rows<kHeadDim, S::kKeys>(sh.v, a.v, ready, key, kv_head, batch);
    for (int head = kv_head * group; head < (kv_head + 1) * group; ++head)
      for (int tile = first_tile(a.problem, key); tile < tiles_of_head(a.problem); ++tile) load_queries(tile, head, batch);
  }
};

template <class Element, int kHeadDim>
struct Consumer {
  using S = Shape<kHeadDim>;
  const BackwardArgs& a;
  const Shared<kHeadDim>& sh;
  const Turns turns;
  const uint64_t k, v, tiles, tiles_transposed;
  float dk[kHeadDim / 2], dv[kHeadDim / 2], s[kQueryTile / 2], dp[kQueryTile / 2];
  uint32_t p[kQueryTile / 4], dz[kQueryTile / 4];
  int key;  // the warpgroup's first
  Position<S::kStages> at;
  int before;  // the stage whose products with p and dz are still to come; −1: none

  __device__ __forceinline__ Consumer(const BackwardArgs& args, const Shared<kHeadDim>& shared, int id)
      : a(args),
        sh(shared),
        turns{__shfl_sync(~0U, id / 128, 0)},
        k(hopper::operand(shared.k + turns.warpgroup * 64 * 128)),
        v(hopper::advance(k, S::kResident)),
        tiles(hopper::operand(shared.tiles)),
        tiles_transposed(hopper::operand(shared.tiles, kQueryTile * 128)) {}

  __device__ __forceinline__ void begin() {
    clear(dk), clear(dv);
#pragma unroll
    for (int i = 0; i < kQueryTile / 4; ++i) p[i] = dz[i] = 0;
    before = -1;
  }

  __device__ __forceinline__ void issue_gradients() {
    const uint64_t queries = hopper::advance(tiles_transposed, before * S::kStageBytes);
    accumulate<Element>(dv, p, hopper::advance(queries, S::kTile));
    accumulate<Element>(dk, dz, queries);
    hopper::commit();
  }

  /// Columns are queries: column x of the tile sees the thread's key key + row + 8h iff its position is not before it.
  __device__ __forceinline__ void hide_queries(int first_query) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int first =
          key + row_in_warpgroup() + 8 * h - (a.problem.seqlen_kv - a.problem.seqlen_q) - first_query - 2 * lane_in_quad();
#pragma unroll
      for (int i = 0; i < kQueryTile / 4; ++i)
        if (i / 2 * 8 + i % 2 < first) s[i / 2 * 4 + 2 * h + i % 2] = -INFINITY;
    }
  }

  __device__ __forceinline__ void weights(uint32_t rows) {
#pragma unroll
    for (int b = 0; b < kQueryTile / 8; ++b) {
      const float2 lse2 = load_pair(rows + 32 * b);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        s[4 * b + i] = hopper::exp2_fast(fmaf(s[4 * b + i], a.problem.logit_scale, -(i % 2 ? lse2.y : lse2.x)));
    }
  }
  __device__ __forceinline__ void dlogits(uint32_t rows) {
#pragma unroll
    for (int b = 0; b < kQueryTile / 8; ++b) {
      const float2 reference = load_pair(rows + kQueryTile * 4 + 32 * b);
      const float2 shift = load_pair(rows + 2 * kQueryTile * 4 + 32 * b);
      float z[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        z[i] = s[4 * b + i] * (dp[4 * b + i] - (i % 2 ? reference.y : reference.x) + (i % 2 ? shift.y : shift.x));
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        p[2 * b + h] = hopper::pack<Element>(s[4 * b + 2 * h], s[4 * b + 2 * h + 1]);
        dz[2 * b + h] = hopper::pack<Element>(z[2 * h], z[2 * h + 1]);
      }
    }
  }

  __device__ __forceinline__ void step(int tile) {
    sh.pipeline.full(at.stage).wait(at.phase);
    turns.take();
    if (before < 0) before = at.stage;  // p and dz are 0: the products with this stage add nothing
    hopper::pin(s), hopper::pin(dk), hopper::pin(dv);
    hopper::fence();
    issue_gradients();
    const uint64_t queries = hopper::advance(tiles, at.stage * S::kStageBytes);
    multiply_rows<Element, kHeadDim, S::kKeys, kQueryTile>(s, k, queries);
    hopper::commit();
    hopper::wait<1>();
    hopper::pin(dk), hopper::pin(dv);
    if (before != at.stage) release(sh.pipeline.empty(before));
    hopper::pin(dp);
    hopper::fence();
    multiply_rows<Element, kHeadDim, S::kKeys, kQueryTile>(dp, v, hopper::advance(queries, S::kTile));
    hopper::commit();
    turns.pass();
    hopper::wait<1>();
    hopper::pin(s);
    const int first_query = tile * kQueryTile;
    if (a.problem.causal && key + 63 > last_visible(a.problem, first_query)) hide_queries(first_query);
    const uint32_t rows = sh.rows + at.stage * S::kRowBytes + 8 * lane_in_quad();
    weights(rows);
    hopper::wait<0>();
    hopper::pin(dp);
    dlogits(rows);
    before = at.stage;
    at.step();
  }

  /// A tile whose queries all stand before the warpgroup's keys. One at a time: a stage may be owed, and the ring must go on.
  __device__ __forceinline__ void skip() {
    sh.pipeline.full(at.stage).wait(at.phase);
    turns.take();
    turns.pass();
    release(sh.pipeline.empty(at.stage));
    at.step();
  }

  /// Keys that are padded get zeros, whatever their sums are.
  __device__ __forceinline__ void drop_padded(int batch) {
    const uint32_t* words = a.problem.keep + static_cast<int64_t>(batch) * a.problem.keep_words;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int mine = key + row_in_warpgroup() + 8 * h;
      if (mine < a.problem.seqlen_kv && words[mine / 32] >> mine % 32 & 1) continue;
#pragma unroll
      for (int i = 0; i < kHeadDim / 4; ++i) dk[i / 2 * 4 + 2 * h + i % 2] = dv[i / 2 * 4 + 2 * h + i % 2] = 0.0F;
    }
  }
  __device__ __forceinline__ void store(int batch, int kv_head) {
    if (a.problem.keep != nullptr) drop_padded(batch);
    const float once[2] = {1.0F, 1.0F}, scaled[2] = {a.dk_scale, a.dk_scale};
    const int first = key + row_in_warpgroup(), keys = a.problem.seqlen_kv, head_dim = a.problem.head_dim, lane = lane_in_quad();
    store_rows<Element>(a.dv, batch, kv_head, first, keys, head_dim, dv, once, lane);
    store_rows<Element>(a.dk, batch, kv_head, first, keys, head_dim, dk, scaled, lane);
  }

  __device__ __forceinline__ void operator()(const Piece& piece) {
    const Problem& problem = a.problem;
    const int block_key = piece.index * S::kKeys, count = tiles_of_head(problem), kv_heads = problem.heads / problem.group;
    key = block_key + 64 * turns.warpgroup;
    begin();
    for (int h = 0; h < problem.group; ++h) {
      int tile = first_tile(problem, block_key);
      if (tile + 1 < count && last_visible(problem, tile * kQueryTile + kQueryTile - 1) < key) skip(), ++tile;
      for (; tile < count; ++tile) step(tile);
    }
    release(sh.pipeline.resident_empty());
    hopper::pin(dk), hopper::pin(dv);
    hopper::fence();
    issue_gradients();
    hopper::wait<0>();
    hopper::pin(dk), hopper::pin(dv);
    release(sh.pipeline.empty(before));
    store(piece.head / kv_heads, piece.head % kv_heads);
  }
};

template <class Element, int kHeadDim>
__global__ void __launch_bounds__(kBackwardThreads, 1) dkv_kernel(const __grid_constant__ BackwardArgs a) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  run_block<Shared<kHeadDim>, Producer<kHeadDim>, Consumer<Element, kHeadDim>>(a);
#endif
}

template <class Element, int kHeadDim>
KernelInfo info(Instance<Element, kHeadDim>) {
  using S = Shape<kHeadDim>;
  return {reinterpret_cast<const void*>(dkv_kernel<Element, kHeadDim>), "softmax fused dk, dv", kBackwardThreads,
          S::kSharedBytes, S::kKeys};
}

}  // namespace

KernelInfo dkv_kernel_of(ElementType type, int padded_head_dim) {
  return choose(type, padded_head_dim, [](auto instance) { return info(instance); });
}

}  // namespace attest::fused
