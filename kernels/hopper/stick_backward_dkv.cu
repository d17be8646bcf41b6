// stickbreaking.cuda.fused, dk and dv. A block owns 128 keys of a KV head, 64 a warpgroup, and takes tiles of 64 queries. Sticks run along
// a query's keys, so scores lie as in the kernel of dq, each warpgroup with its own saved sticks and F; weights and dz then go through
// shared memory, from where the products for keys read them transposed.
//
// Reduction contract. A key is owned by one warpgroup. dv_j = Σ A_ij dout_i and dk_j = |scale| · Σ dz_ij q_i (q has the scale's sign):
// one sum each, over the group's query heads ascending, in a head over tiles of 64 queries cut at multiples of 64 of the query's index in
// its sequence, ascending, in a tile by k16 products, queries ascending. A_ij and dz_ij are those of stick_backward_dq.cu, from the same
// stick and F of the tile, rounded to the element type. Hidden entries, and tiles past the forward's last, add exact zeros or nothing.
#include "kernels/hopper/fused_pipeline.cuh"
#include "kernels/hopper/stick_backward.h"
#include "kernels/hopper/stick_backward_tiles.cuh"
#include "kernels/hopper/stick_scan_backward.cuh"

namespace attest::stick {
namespace {

using fused::Position;

template <int kHeadDim>
struct Shape {
  static constexpr int kKeys = 128, kStages = 3, kThreads = 384;
  static constexpr int kResident = kKeys * kHeadDim * 2, kTile = kSavedTile * kHeadDim * 2, kRowBytes = 4 * kSavedTile * 4;
  static constexpr int kStageBytes = 2 * kTile, kOperand = kSavedTile * kSavedTile * 2;
  static constexpr int kSharedBytes = 1024 + 2 * kResident + 4 * kOperand + kStages * (kStageBytes + kRowBytes);
};

/// What the producer and the warpgroups leave for each other.
struct Notes {
  int piece;         // −1: none is left
  int tile[4];       // of a stage: its tile of queries; −1: none follows for this piece
  float largest[2][4];  // of a warpgroup: its warps' largest |dz|
};

template <int kHeadDim>
struct Shared {
  using S = Shape<kHeadDim>;
  uint32_t k, v, operands, tiles, rows;
  fused::Pipeline<S::kStages> pipeline;
  volatile Notes* notes;
  __device__ __forceinline__ Shared(const char* memory, const uint64_t* barriers, volatile Notes* note_memory)
      : k((hopper::shared_address(memory) + 1023) & ~1023U),
        v(k + S::kResident),
        operands(v + S::kResident),
        tiles(operands + 4 * S::kOperand),
        rows(tiles + S::kStages * S::kStageBytes),
        pipeline{hopper::shared_address(barriers), &note_memory->piece},
        notes(note_memory) {}
};

/// The first tile of queries that may see `key`, and the number of tiles of a head.
__device__ __forceinline__ int first_query_tile(const Problem& p, int key) { return max(key - p.first_limit, 0) / kSavedTile; }
__device__ __forceinline__ int query_tiles(const Problem& p) { return (p.seqlen_q + kSavedTile - 1) / kSavedTile; }

template <int kHeadDim>
struct Producer {
  using S = Shape<kHeadDim>;
  const BackwardArgs& a;
  const Shared<kHeadDim>& sh;
  Position<S::kStages> at;

  __device__ __forceinline__ void load(int tile, int head, int batch, int key_tile) {
    sh.pipeline.empty(at.stage).wait(at.phase ^ 1);
    sh.notes->tile[at.stage] = tile;
    const hopper::Barrier full = sh.pipeline.full(at.stage);
    if (tile < 0) return full.arrive(), at.step();
    const uint32_t to = sh.tiles + at.stage * S::kStageBytes, rows = sh.rows + at.stage * S::kRowBytes;
    const int row = tile * kSavedTile;
    const int halves = last_visible(a.problem, row + kSavedTile - 1) < (key_tile + 1) * kSavedTile ? 1 : 2;  // F of others: never written
    full.arrive_expecting(S::kStageBytes + S::kRowBytes / 2 * halves);
    fused::load_rows<kHeadDim, kSavedTile>(to, a.q, full, row, head, batch);
    fused::load_rows<kHeadDim, kSavedTile>(to + S::kTile, a.dout, full, row, head, batch);
#pragma unroll
    for (int w = 0; w < 2; ++w) {
      if (w >= halves) break;
      const int64_t from = a.saved.at(batch * a.problem.heads + head, key_tile + w, row);
      hopper::load_bytes(rows + 512 * w, a.saved.stick + from, 256, full);
      hopper::load_bytes(rows + 512 * w + 256, a.saved.far + from, 256, full);
    }
    at.step();
  }

  /// The tiles of a head whose forward came as far as the keys. All lanes look; lane 0 loads.
  __device__ __forceinline__ void load_head(int head, int batch, int key_tile) {
    const int count = query_tiles(a.problem), lane = threadIdx.x;
    const int* first = a.saved.first_tile + a.saved.block_at(batch * a.problem.heads + head, 0);
    for (int begin = first_query_tile(a.problem, key_tile * kSavedTile); begin < count; begin += 32) {
      const int tile = begin + lane;
      unsigned live = __ballot_sync(~0U, tile < count && first[min(tile, count - 1)] <= key_tile);
      for (; live != 0; live &= live - 1)
        if (lane == 0) load(begin + __ffs(live) - 1, head, batch, key_tile);
    }
  }

  __device__ __forceinline__ void produce(const Piece& piece) {
    const int kv_heads = a.problem.heads / a.problem.group, key = piece.index * S::kKeys;
    const int batch = piece.head / kv_heads, kv_head = piece.head % kv_heads;
    const hopper::Barrier ready = sh.pipeline.resident_full();
    if (threadIdx.x == 0) {
      ready.arrive_expecting(2 * S::kResident);
      load_keys<kHeadDim, S::kKeys, 8>(sh.k, a.k, ready, key, kv_head, batch);
      load_keys<kHeadDim, S::kKeys, 8>(sh.v, a.v, ready, key, kv_head, batch);
    }
    for (int h = 0; h < a.problem.group; ++h) load_head(kv_head * a.problem.group + h, batch, key / kSavedTile);
    if (threadIdx.x == 0) load(-1, 0, 0, 0);
  }

  __device__ __forceinline__ void produce_all() {
    uint32_t freed = 1;
    for (int number = blockIdx.x; number < a.work.count;) {
      sh.pipeline.resident_empty().wait(freed);
      freed ^= 1;
      if (threadIdx.x == 0) sh.notes->piece = number;
      produce(fused::piece_of(a.work, number));
      number = __shfl_sync(~0U, threadIdx.x == 0 ? fused::take_next(a.work) : 0, 0);
    }
    sh.pipeline.resident_empty().wait(freed);
    if (threadIdx.x != 0) return;
    sh.notes->piece = -1;
    sh.pipeline.resident_full().arrive();
  }
};

template <class Element, int kHeadDim>
struct Consumer {
  using S = Shape<kHeadDim>;
  const BackwardArgs& a;
  const Shared<kHeadDim>& sh;
  const fused::Turns turns;
  const uint32_t operand_row;  // where this lane's row of weights is stored
  const uint64_t k, v, weights, tiles, tiles_transposed;
  float dk[kHeadDim / 2], dv[kHeadDim / 2], s[32], dp[32];
  float scale;
  int key;  // the warpgroup's first
  Position<S::kStages> at;
  int before;  // the stage whose products with weights and dz are still to come; −1: none

  __device__ __forceinline__ Consumer(const BackwardArgs& args, const Shared<kHeadDim>& shared, int id)
      : a(args),
        sh(shared),
        turns{__shfl_sync(~0U, id / 128, 0)},
        operand_row(my_operands() + (id % 128 / 32 * 16 + id % 8) * 128 + ((id % 32 / 8 ^ id % 8) << 4)),
        k(hopper::operand(shared.k + turns.warpgroup * 64 * 128)),
        v(hopper::advance(k, S::kResident)),
        weights(hopper::operand(my_operands(), S::kOperand)),
        tiles(hopper::operand(shared.tiles)),
        tiles_transposed(hopper::operand(shared.tiles, kSavedTile * 128)) {}

  /// Weights, then dz: [64 queries][64 keys] each, swizzled as the copy engine does it.
  __device__ __forceinline__ uint32_t my_operands() const { return sh.operands + turns.warpgroup * 2 * S::kOperand; }
  __device__ __forceinline__ void sync_warpgroup() const { hopper::named_sync(3 + turns.warpgroup, 128); }

  __device__ __forceinline__ void begin() {
    fused::clear(dk), fused::clear(dv);
    scale = kScaled<Element> ? kFirstScale : 1.0F;
    before = -1;
  }

  /// Makes the products that are owed nothing: the first tile then needs no path of its own.
  __device__ __forceinline__ void owe_nothing() {
    const uint32_t mine = my_operands() + fused::thread_in_block() % 128 * 16;
#pragma unroll
    for (int i = 0; i < 2 * S::kOperand / 2048; ++i)
      asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(mine + i * 2048), "r"(0) : "memory");
    hopper::publish_stores();
    sync_warpgroup();
    before = at.stage;
  }

  __device__ __forceinline__ void issue_gradients() {
    const uint64_t queries = hopper::advance(tiles_transposed, before * S::kStageBytes);
#pragma unroll
    for (int i = 0; i < kSavedTile / 16; ++i)
      hopper::multiply_add_transposed<Element>(dv, hopper::advance(weights, i * 2048), hopper::advance(queries, S::kTile + i * 2048));
#pragma unroll
    for (int i = 0; i < kSavedTile / 16; ++i)
      hopper::multiply_add_transposed<Element>(dk, hopper::advance(weights, S::kOperand + i * 2048),
                                               hopper::advance(queries, i * 2048));
    hopper::commit();
  }

  /// What is owed, now.
  __device__ __forceinline__ void settle() {
    if (before < 0) return;
    hopper::pin(dk), hopper::pin(dv);
    hopper::fence();
    issue_gradients();
    hopper::wait<0>();
    hopper::pin(dk), hopper::pin(dv);
    fused::release(sh.pipeline.empty(before));
    before = -1;
    sync_warpgroup();  // nobody writes operands that another warp's products still read
  }

  __device__ __forceinline__ void hide_keys(int first_query, int batch) {
    const Problem& problem = a.problem;
    if (key + 63 > last_visible(problem, first_query)) {
      const int row = first_query + fused::row_in_warpgroup();
      const int last[2] = {last_visible(problem, row), last_visible(problem, row + 8)};
      hide<8>(s, last, key, fused::lane_in_quad());
    }
    if (problem.keep)
      hide_padded<8>(s, problem.keep + int64_t{batch} * problem.keep_words + key / 32, fused::lane_in_quad());
  }

  __device__ __forceinline__ void store_operand(uint32_t to, const uint32_t* packed) const {
    hopper::store_matrices(to, packed);
    hopper::store_matrices(to ^ 64, packed + 4);
  }
  template <int h>
  __device__ __forceinline__ void store_dz(float factor) const {
    uint32_t packed[8];
#pragma unroll
    for (int b = 0; b < 8; ++b)
      packed[b] = hopper::pack<Element>(dp[4 * b + 2 * h] * factor, dp[4 * b + 2 * h + 1] * factor);
    store_operand(operand_row + S::kOperand + 1024 * h, packed);
  }

  template <int h>
  __device__ __forceinline__ void finish_row(const float (&rest)[16], float stick, uint32_t rows, int lane) {
    uint32_t packed[8];
    const float sum = weigh_row<Element, h>(s, rest, dp, stick, packed);
    store_operand(operand_row + 1024 * h, packed);
    float far = fused::load_float(rows + 256 + 32 * h);
    dlogits_row<h>(s, rest, dp, sum, far, lane);
    if constexpr (!kScaled<Element>) store_dz<h>(1.0F);
  }

  /// dz that have become too large for the scale so far make dk's smaller; the warpgroup's all at once.
  __device__ __forceinline__ void rescale() {
    const float mine = fmaxf(largest_of_row<0>(dp), largest_of_row<1>(dp));
    const uint32_t most = __reduce_max_sync(~0U, __float_as_uint(mine));
    const int thread = fused::thread_in_block();
    if (thread % 32 == 0) sh.notes->largest[turns.warpgroup][thread / 32 % 4] = __uint_as_float(most);
    sync_warpgroup();
    float largest = 0.0F;
#pragma unroll
    for (int warp = 0; warp < 4; ++warp) largest = fmaxf(largest, sh.notes->largest[turns.warpgroup][warp]);
    const float next = next_scale(scale, largest), ratio = next / scale;
    scale = next;
    store_dz<0>(scale), store_dz<1>(scale);
    if (ratio == 1.0F) return;
#pragma unroll
    for (int i = 0; i < kHeadDim / 2; ++i) dk[i] *= ratio;
  }

  __device__ __forceinline__ void step(int tile, int batch) {
    if (before < 0) owe_nothing();
    turns.take();
    hopper::pin(s), hopper::pin(dk), hopper::pin(dv);
    hopper::fence();
    issue_gradients();
    const uint64_t queries = hopper::advance(tiles, at.stage * S::kStageBytes);
    fused::multiply_rows<Element, kHeadDim, kSavedTile, S::kKeys>(s, queries, k);
    hopper::commit();
    hopper::wait<1>();
    hopper::pin(dk), hopper::pin(dv);
    if (before != at.stage) fused::release(sh.pipeline.empty(before));
    hopper::pin(dp);
    hopper::fence();
    fused::multiply_rows<Element, kHeadDim, kSavedTile, S::kKeys>(dp, hopper::advance(queries, S::kTile), v);
    hopper::commit();
    turns.pass();
    hopper::wait<1>();
    hopper::pin(s);
    sync_warpgroup();  // every warp's products have read the operands
    hide_keys(tile * kSavedTile, batch);
    const int lane = fused::lane_in_quad();
    const uint32_t rows = sh.rows + at.stage * S::kRowBytes + 512 * turns.warpgroup + 4 * fused::row_in_warpgroup();
    float rest[16];
    float stick = break_row<0>(s, rest, a.problem.logit_scale, fused::load_float(rows), lane);
    hopper::wait<0>();
    hopper::pin(dp);
    finish_row<0>(rest, stick, rows, lane);
    stick = break_row<1>(s, rest, a.problem.logit_scale, fused::load_float(rows + 32), lane);
    finish_row<1>(rest, stick, rows, lane);
    if constexpr (kScaled<Element>) rescale();
    hopper::publish_stores();
    sync_warpgroup();
    before = at.stage;
    at.step();
  }

  /// A tile whose queries all stand before the warpgroup's keys.
  __device__ __forceinline__ void skip() {
    settle();
    turns.take();
    turns.pass();
    fused::release(sh.pipeline.empty(at.stage));
    at.step();
  }

  /// Row m of a warpgroup's accumulators is key 8·(m % 8) + m / 8.
  template <int h>
  __device__ __forceinline__ void store(const Rows& to, int batch, int kv_head, const float (&d)[kHeadDim / 2], float factor,
                                        int head_dim) const {
    const int row = fused::row_in_warpgroup() + 8 * h, mine = key + row % 8 * 8 + row / 8, lane = fused::lane_in_quad();
    uint16_t* at_row = static_cast<uint16_t*>(to.data) + to.strides.at(batch, kv_head, mine);
    const bool exists = mine < a.problem.seqlen_kv;
    if (to.aligned && head_dim == kHeadDim)
      fused::store_row<Element, true, h>(at_row, exists, head_dim, d, factor, lane);
    else
      fused::store_row<Element, false, h>(at_row, exists, head_dim, d, factor, lane);
  }

  __device__ __forceinline__ void own(const Piece& piece) {
    const int kv_heads = a.problem.heads / a.problem.group, batch = piece.head / kv_heads, kv_head = piece.head % kv_heads;
    key = piece.index * S::kKeys + 64 * turns.warpgroup;
    begin();
    for (;;) {
      sh.pipeline.full(at.stage).wait(at.phase);
      const int tile = __shfl_sync(~0U, sh.notes->tile[at.stage], 0);
      if (tile < 0) break;
      if (key <= last_visible(a.problem, tile * kSavedTile + kSavedTile - 1))
        step(tile, batch);
      else
        skip();
    }
    fused::release(sh.pipeline.empty(at.stage));
    at.step();
    fused::release(sh.pipeline.resident_empty());
    settle();
    const float dv_factor = 1.0F / kWeightScale<Element>, dk_factor = finite(a.dk_scale * (1.0F / scale));
    store<0>(a.dv, batch, kv_head, dv, dv_factor, a.problem.head_dim_v);
    store<1>(a.dv, batch, kv_head, dv, dv_factor, a.problem.head_dim_v);
    store<0>(a.dk, batch, kv_head, dk, dk_factor, a.problem.head_dim);
    store<1>(a.dk, batch, kv_head, dk, dk_factor, a.problem.head_dim);
  }

  __device__ __forceinline__ void consume() {
    if (turns.warpgroup == 1) turns.pass();
    for (uint32_t phase = 0;; phase ^= 1) {
      sh.pipeline.resident_full().wait(phase);
      const int number = __shfl_sync(~0U, threadIdx.x % 32 == 0 ? sh.notes->piece : 0, 0);
      if (number < 0) break;
      own(fused::piece_of(a.work, number));
    }
    if (turns.warpgroup == 0) turns.take();
  }
};

template <class Element, int kHeadDim>
__global__ void __launch_bounds__(384, 1) dkv_kernel(const __grid_constant__ BackwardArgs a) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) char memory[];
  __shared__ __align__(8) uint64_t barriers[fused::Pipeline<Shape<kHeadDim>::kStages>::kBarriers];
  __shared__ Notes notes;
  const Shared<kHeadDim> shared(memory, barriers, &notes);
  if (threadIdx.x == 0) shared.pipeline.init(8);
  __syncthreads();
  if (__shfl_sync(~0U, threadIdx.x / 128, 0) == 0) {
    hopper::give_up_registers<40>();
    if (threadIdx.x < 32) Producer<kHeadDim>{a, shared}.produce_all();
  } else {
    hopper::take_registers<232>();
    Consumer<Element, kHeadDim>(a, shared, threadIdx.x - 128).consume();
  }
#endif
}

template <class Element, int kHeadDim>
KernelInfo info() {
  using S = Shape<kHeadDim>;
  return {reinterpret_cast<const void*>(dkv_kernel<Element, kHeadDim>), "stick-breaking fused dk, dv", S::kThreads, S::kSharedBytes,
          S::kKeys};
}

}  // namespace

KernelInfo dkv_kernel_of(ElementType type, int padded_head_dim) {
  return fused::choose(type, padded_head_dim, []<class E, int kHeadDim>(fused::Instance<E, kHeadDim>) { return info<E, kHeadDim>(); });
}

}  // namespace attest::stick
