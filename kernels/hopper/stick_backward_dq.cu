// stickbreaking.cuda.fused, dq. A block owns 128 queries, 64 a warpgroup; tiles of 64 keys, cut at absolute multiples, from the
// farthest that the forward visited to the nearest: F, what a query's farther keys and its remainder are worth, grows on the way.
//
// Reduction contract. For each tile: s and dP: k16 products, d ascending, from zero; β and 1 − β as in the forward. The stick before
// the tile's nearest key is the forward's. Lane x of four owns keys 16x … 16x + 15 of the tile. With `nearer` the product over the
// lanes y > x of their Π(1 − β) (as in the forward), descending from stick·nearer: A_j = β_j·stick, stick = stick·(1−β)_j, a_j = A_j·dP_j;
// a lane's Σ a descends too. Ascending from F + Σ of the lanes y < x (0; 0; 0+1; 2 + (0+1)): dz_j = fma((1−β)_j, a_j, −(β_j·F)), F = F + a_j;
// to the next tile goes F + ((0+1) + (2+3)). F begins with drem·rem.
// dq = scale · Σ round(dz_j) k_j: k16 products; a k16 group holds keys 8r + b of the tile, b = 2g and 2g + 1, r = 0 … 7.
#include "kernels/hopper/fused_pipeline.cuh"
#include "kernels/hopper/stick_backward.h"
#include "kernels/hopper/stick_backward_tiles.cuh"
#include "kernels/hopper/stick_scan_backward.cuh"

namespace attest::stick {
namespace {

using fused::Position;

template <int kHeadDim>
struct Shape {
  static constexpr int kRows = 128, kStages = 3, kThreads = 384;
  static constexpr int kResident = kRows * kHeadDim * 2, kTile = kSavedTile * kHeadDim * 2;  // bytes of Q or dO; of K or V
  static constexpr int kRowBytes = kRows * 4, kStageBytes = 2 * kTile;
  static constexpr int kSharedBytes = 1024 + 2 * kResident + kStages * (kStageBytes + kRowBytes);
};

template <int kHeadDim>
struct Shared {
  using S = Shape<kHeadDim>;
  uint32_t q, dout, tiles, rows;
  fused::Pipeline<S::kStages> pipeline;
  __device__ __forceinline__ Shared(const char* memory, const uint64_t* barriers, volatile int* piece)
      : q((hopper::shared_address(memory) + 1023) & ~1023U),
        dout(q + S::kResident),
        tiles(dout + S::kResident),
        rows(tiles + S::kStages * S::kStageBytes),
        pipeline{hopper::shared_address(barriers), piece} {}
};

/// The tiles of 64 keys that 64 queries from `row` on need: [first, last]; last is −1 for rows past the end. Their sticks of other
/// tiles may never have been written.
struct Tiles {
  int first, last;
  __device__ __forceinline__ bool have(int n) const { return first <= n && n <= last; }
};
__device__ __forceinline__ Tiles tiles_of(const BackwardArgs& a, int head, int row) {
  if (row >= a.problem.seqlen_q) return {a.saved.tiles, -1};
  const int first = kDefect == Defect::kSnapshotsNeverWritten ? 0 : a.saved.first_tile[a.saved.block_at(head, row)];
  return {first, visible_tiles(a.problem, row + 63, kSavedTile) - 1};
}
__device__ __forceinline__ Tiles tiles_of_both(const BackwardArgs& a, int head, int row) {
  const Tiles x = tiles_of(a, head, row), y = tiles_of(a, head, row + 64);
  return {min(x.first, y.first), max(x.last, y.last)};
}

template <int kHeadDim>
__device__ __forceinline__ void produce_piece(const BackwardArgs& a, const Shared<kHeadDim>& sh, const Piece& piece,
                                              Position<Shape<kHeadDim>::kStages>& at) {
  using S = Shape<kHeadDim>;
  const int batch = piece.head / a.problem.heads, head = piece.head % a.problem.heads, row = piece.index * S::kRows;
  const hopper::Barrier ready = sh.pipeline.resident_full();
  ready.arrive_expecting(2 * S::kResident);
  fused::load_rows<kHeadDim, S::kRows>(sh.q, a.q, ready, row, head, batch);
  fused::load_rows<kHeadDim, S::kRows>(sh.dout, a.dout, ready, row, head, batch);
  const int kv_head = head / a.problem.group;
  const Tiles half[2] = {tiles_of(a, piece.head, row), tiles_of(a, piece.head, row + 64)};
  for (int n = min(half[0].first, half[1].first); n <= max(half[0].last, half[1].last); ++n, at.step()) {
    const hopper::Barrier full = sh.pipeline.full(at.stage);
    const uint32_t to = sh.tiles + at.stage * S::kStageBytes, rows = sh.rows + at.stage * S::kRowBytes;
    sh.pipeline.empty(at.stage).wait(at.phase ^ 1);
    full.arrive_expecting(S::kStageBytes + S::kRowBytes / 2 * (half[0].have(n) + half[1].have(n)));
    load_keys<kHeadDim, kSavedTile, 8>(to, a.k, full, n * kSavedTile, kv_head, batch);
    load_keys<kHeadDim, kSavedTile, 8>(to + S::kTile, a.v, full, n * kSavedTile, kv_head, batch);
#pragma unroll
    for (int w = 0; w < 2; ++w)
      if (half[w].have(n))
        hopper::load_bytes(rows + 256 * w, a.saved.stick + a.saved.at(piece.head, n, row + 64 * w), S::kRowBytes / 2, full);
  }
}

template <int kHeadDim>
__device__ __forceinline__ void produce(const BackwardArgs& a, const Shared<kHeadDim>& sh) {
  Position<Shape<kHeadDim>::kStages> at;
  uint32_t freed = 1;
  for (int number = blockIdx.x; number < a.work.count; number = fused::take_next(a.work)) {
    sh.pipeline.resident_empty().wait(freed);
    freed ^= 1;
    *sh.pipeline.piece = number;
    produce_piece(a, sh, fused::piece_of(a.work, number), at);
  }
  sh.pipeline.resident_empty().wait(freed);
  *sh.pipeline.piece = -1;
  sh.pipeline.resident_full().arrive();
}

template <class Element, int kHeadDim>
struct Consumer {
  using S = Shape<kHeadDim>;
  const BackwardArgs& a;
  const Shared<kHeadDim>& sh;
  const fused::Turns turns;
  const int lane, row_in_block;
  const uint64_t q, dout, tiles, tiles_transposed;
  float dq[kHeadDim / 2], s[32], dp[32], rest[2][16];
  uint32_t dz[16];
  float far[2], scale[2];
  Piece piece;
  Position<S::kStages> at;
  int before;  // the stage whose product with dz is still to come

  __device__ __forceinline__ Consumer(const BackwardArgs& args, const Shared<kHeadDim>& shared, int id)
      : a(args),
        sh(shared),
        turns{__shfl_sync(~0U, id / 128, 0)},
        lane(id % 4),
        row_in_block(id / 32 * 16 + id % 32 / 4),
        q(hopper::operand(shared.q + turns.warpgroup * 64 * 128)),
        dout(hopper::advance(q, S::kResident)),
        tiles(hopper::operand(shared.tiles)),
        tiles_transposed(hopper::operand(shared.tiles, kSavedTile * 128)) {}

  __device__ __forceinline__ void begin() {
    fused::clear(dq);
#pragma unroll
    for (int i = 0; i < 16; ++i) dz[i] = 0;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      far[h] = remainder_worth(a, piece.head, piece.index * S::kRows + row_in_block + 8 * h);
      scale[h] = kScaled<Element> ? kFirstScale : 1.0F;
    }
    before = at.stage;  // dz is 0: the first step's product with K adds nothing
  }

  __device__ __forceinline__ void hide_keys(int first_key) {
    const Problem& problem = a.problem;
    const int row = piece.index * S::kRows;
    if (first_key + kSavedTile - 1 > last_visible(problem, row + 64 * turns.warpgroup)) {
      const int last[2] = {last_visible(problem, row + row_in_block), last_visible(problem, row + row_in_block + 8)};
      hide<8>(s, last, first_key, lane);
    }
    if (problem.keep)
      hide_padded<8>(s, problem.keep + int64_t{piece.head / problem.heads} * problem.keep_words + first_key / 32, lane);
  }

  /// dz of a row that has become too large for the scale so far makes dq's smaller.
  __device__ __forceinline__ void rescale() {
    const float largest[2] = {fused::quad_max(largest_of_row<0>(dp)), fused::quad_max(largest_of_row<1>(dp))};
    float ratio[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float next = next_scale(scale[h], largest[h]);
      ratio[h] = next / scale[h];
      scale[h] = next;
    }
#pragma unroll
    for (int i = 0; i < 32; ++i) dp[i] *= scale[i / 2 % 2];
    if (!__any_sync(~0U, ratio[0] != 1.0F || ratio[1] != 1.0F)) return;
#pragma unroll
    for (int i = 0; i < kHeadDim / 2; ++i) dq[i] *= ratio[i / 2 % 2];
  }

  __device__ __forceinline__ void issue_sum() {
    fused::accumulate<Element>(dq, dz, hopper::advance(tiles_transposed, before * S::kStageBytes));
    hopper::commit();
  }

  template <int h>
  __device__ __forceinline__ void dlogits(float stick) {
    const float sum = weigh_row<Element, h>(s, rest[h], dp, stick, nullptr);
    dlogits_row<h>(s, rest[h], dp, sum, far[h], lane);
  }

  __device__ __forceinline__ void step(int n, bool first, bool last) {
    sh.pipeline.full(at.stage).wait(at.phase);
    const uint32_t sticks = sh.rows + at.stage * S::kRowBytes + 4 * row_in_block;
    const float stick[2] = {fused::load_float(sticks), fused::load_float(sticks + 32)};
    if (lane < 2)
      a.saved.far[a.saved.at(piece.head, n, piece.index * S::kRows + row_in_block + 8 * lane)] = lane == 0 ? far[0] : far[1];
    turns.take();
    hopper::pin(s), hopper::pin(dq);
    hopper::fence();
    issue_sum();
    const uint64_t keys = hopper::advance(tiles, at.stage * S::kStageBytes);
    fused::multiply_rows<Element, kHeadDim, S::kRows, kSavedTile>(s, q, keys);
    hopper::commit();
    hopper::wait<1>();
    hopper::pin(dq);
    if (!first) fused::release(sh.pipeline.empty(before));
    hopper::pin(dp);
    hopper::fence();
    fused::multiply_rows<Element, kHeadDim, S::kRows, kSavedTile>(dp, dout, hopper::advance(keys, S::kTile));
    hopper::commit();
    turns.pass();
    hopper::wait<1>();
    hopper::pin(s);
    hide_keys(n * kSavedTile);
    const float prefix[2] = {break_row<0>(s, rest[0], a.problem.logit_scale, stick[0], lane),
                             break_row<1>(s, rest[1], a.problem.logit_scale, stick[1], lane)};
    hopper::wait<0>();
    hopper::pin(dp);
    if (last) fused::release(sh.pipeline.resident_empty());
    dlogits<0>(prefix[0]);
    dlogits<1>(prefix[1]);
    if constexpr (kScaled<Element>) rescale();
    fused::round_to_operand<Element>(dz, dp);
    before = at.stage;
    at.step();
  }

  /// A tile that only the other warpgroup needs.
  __device__ __forceinline__ void skip() {
    sh.pipeline.full(at.stage).wait(at.phase);
    turns.take();
    turns.pass();
    fused::release(sh.pipeline.empty(at.stage));
    at.step();
  }

  __device__ __forceinline__ void own() {
    const int row = piece.index * S::kRows;
    const Tiles all = tiles_of_both(a, piece.head, row), mine = tiles_of(a, piece.head, row + 64 * turns.warpgroup);
    for (int n = all.first; n < min(mine.first, all.last + 1); ++n) skip();
    if (mine.last < 0) return fused::release(sh.pipeline.resident_empty());
    begin();
    for (int n = mine.first; n <= mine.last; ++n) step(n, n == mine.first, n == mine.last);
    hopper::pin(dq);
    hopper::fence();
    issue_sum();
    hopper::wait<0>();
    hopper::pin(dq);
    fused::release(sh.pipeline.empty(before));
    for (int n = mine.last; n < all.last; ++n) skip();
    const float factor[2] = {finite(a.dq_scale * (1.0F / scale[0])), finite(a.dq_scale * (1.0F / scale[1]))};
    fused::store_rows<Element>(a.dq, piece.head / a.problem.heads, piece.head % a.problem.heads, row + row_in_block,
                               a.problem.seqlen_q, a.problem.head_dim, dq, factor, lane);
  }

  __device__ __forceinline__ void consume() {
    if (turns.warpgroup == 1) turns.pass();
    for (uint32_t phase = 0;; phase ^= 1) {
      sh.pipeline.resident_full().wait(phase);
      const int number = __shfl_sync(~0U, threadIdx.x % 32 == 0 ? *sh.pipeline.piece : 0, 0);
      if (number < 0) break;
      piece = fused::piece_of(a.work, number);
      own();
    }
    if (turns.warpgroup == 0) turns.take();
  }
};

template <class Element, int kHeadDim>
__global__ void __launch_bounds__(384, 1) dq_kernel(const __grid_constant__ BackwardArgs a) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) char memory[];
  __shared__ __align__(8) uint64_t barriers[fused::Pipeline<Shape<kHeadDim>::kStages>::kBarriers];
  __shared__ int piece;
  const Shared<kHeadDim> shared(memory, barriers, &piece);
  if (threadIdx.x == 0) shared.pipeline.init(8);
  __syncthreads();
  if (__shfl_sync(~0U, threadIdx.x / 128, 0) == 0) {
    hopper::give_up_registers<24>();
    if (threadIdx.x == 0) produce(a, shared);
  } else {
    hopper::take_registers<240>();
    Consumer<Element, kHeadDim>(a, shared, threadIdx.x - 128).consume();
  }
#endif
}

template <class Element, int kHeadDim>
KernelInfo info() {
  using S = Shape<kHeadDim>;
  return {reinterpret_cast<const void*>(dq_kernel<Element, kHeadDim>), "stick-breaking fused dq", S::kThreads, S::kSharedBytes,
          S::kRows};
}

}  // namespace

KernelInfo dq_kernel_of(ElementType type, int padded_head_dim) {
  return fused::choose(type, padded_head_dim, []<class E, int kHeadDim>(fused::Instance<E, kHeadDim>) { return info<E, kHeadDim>(); });
}

}  // namespace attest::stick
