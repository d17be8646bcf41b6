// stickbreaking.cuda.fused, forward. A block is one producer warp, which copies tiles to shared memory, and two or three consumer
// warpgroups of 64 queries each; blocks stay and take pieces of work (a head's block of queries) until none is left.
//
// Reduction contract. A row is owned by one warpgroup; its bits depend on its query, the keys it sees, their absolute indices
// and D alone. Keys are cut at multiples of 32 into sub-tiles and of 512 into segments; all are taken from the nearest to the
// farthest. s_j = Σ_d q_d k_jd: k16 products, d ascending, from zero. u = 2^min(c·s_j, 126) (c = |scale|·log2 e, rounded product),
// (1−β)_j = 1/(1 + u), β_j = u·(1−β)_j, by ex2.approx and rcp.approx. A segment begins with stick = 1, o = 0; a sub-tile does
//   lane x of four owns its keys 8x … 8x + 7, descending: w_j = β_j·own, own = own·(1−β)_j, from own = 1;
//   nearer_x = the product of own over lanes y > x: own_3; own_2·own_3; own_1·(own_2·own_3); all = (own_0·own_1)·(own_2·own_3);
//   A_j = w_j·((stick·nearer)·t), t = 1 or, in fp16, 2^15; stick = stick·all;
//   o = o + Σ round(A_j) v_j: two k16 products, whose k-th key 2x + e + 8i is 8x + 4e + b, first of b = i, then of b = 2 + i.
// Segments meet by O = fma(P, o, O), P = P·stick, from P = 1, O = 0. out = (O + 0)/t, rem = P·stick. Hidden keys have s = −∞, so
// β = 0, 1−β = 1. A block stops early where P or stick is 0 in all of its rows: what would follow is then exactly neutral.
#include "kernels/hopper/fused_store.cuh"
#include "kernels/hopper/stick_forward_producer.cuh"
#include "kernels/hopper/stick_scan.cuh"

namespace attest::stick {
namespace {

template <int kHeadDim>
using Shape = ForwardShape<kHeadDim>;
template <int kHeadDim>
using Shared = ForwardShared<kHeadDim>;

/// Whether `x` holds for each of `threads` consumers, which all call this.
__device__ __forceinline__ bool all_agree(bool x, int threads) {
  uint32_t r;
  asm volatile(
      "{.reg .pred p, q; setp.ne.u32 p, %2, 0; barrier.cta.red.and.aligned.pred q, 1, %1, p; selp.u32 %0, 1, 0, q;}"
      : "=r"(r)
      : "r"(threads), "r"(static_cast<uint32_t>(x))
      : "memory");
  return __shfl_sync(~0U, r, 0) != 0;
}

template <class Element, int kHeadDim>
struct Consumer {
  using S = Shape<kHeadDim>;
  const ForwardArgs& a;
  const Shared<kHeadDim>& shared;
  const int warpgroup;
  const uint64_t query, keys, values;
  float o[kHeadDim / 2], s[64];
  uint32_t p[32];
  float stick[2], nearer[2];  // of the segment; of the segments before it (P)
  bool has_total;
  Piece piece;
  int tile = 0;  // tiles consumed so far, of all pieces

  __device__ __forceinline__ Consumer(const ForwardArgs& args, const Shared<kHeadDim>& sh, int id)
      : a(args),
        shared(sh),
        warpgroup(__shfl_sync(~0U, id / 128, 0)),
        query(hopper::operand(sh.query + warpgroup * 64 * 128)),
        keys(hopper::operand(sh.keys)),
        values(hopper::operand(sh.values, kKeyTile * 128)) {}

  __device__ __forceinline__ int row() const {
    return piece.index * S::kRows + 64 * warpgroup + fused::row_in_warpgroup();
  }
  __device__ __forceinline__ float4* my_total() const { return shared.totals + (fused::thread_in_block() - 128); }

  // Warpgroups take turns in issuing products, so that one's shares are found beside another's products.
  __device__ __forceinline__ void take_turn() const { hopper::named_sync(2 + warpgroup, 256); }
  __device__ __forceinline__ void pass_turn() const {
    hopper::named_arrive(2 + (warpgroup + 1 == S::kWarpgroups ? 0 : warpgroup + 1), 256);
  }

  __device__ __forceinline__ void issue_scores(int stage) {
    hopper::pin(s);
    hopper::fence();
#pragma unroll
    for (int k = 0; k < kHeadDim / 16; ++k) {
      const uint32_t in_row = k % 4 * 32;
      hopper::multiply<Element>(s, hopper::advance(query, k / 4 * S::kRows * 128 + in_row),
                                hopper::advance(keys, stage * S::kTileBytes + k / 4 * kKeyTile * 128 + in_row), k > 0);
    }
    hopper::commit();
  }
  __device__ __forceinline__ void issue_values(int stage) {
    hopper::pin(o);
    hopper::fence();
#pragma unroll
    for (int i = 0; i < kKeyTile / 16; ++i) {
      const int k = i ^ 6;  // the nearest sub-tile first
      hopper::multiply_add<Element>(o, p + 4 * k, hopper::advance(values, stage * S::kTileBytes + k * 16 * 128));
    }
    hopper::commit();
  }

  /// Of tile n: its sticks before the nearest key (of the segment) and before the farther half.
  __device__ __forceinline__ void save_sticks(int n, const float (&near)[2], const float (&middle)[2]) {
    const int lane = fused::lane_in_quad(), first = row();
    if (a.saved.stick == nullptr || first >= a.saved.padded_rows) return;
    const float of_row0 = nearer[0] * (lane & 2 ? near[0] : middle[0]), of_row1 = nearer[1] * (lane & 2 ? near[1] : middle[1]);
    const int half = kDefect == Defect::kSnapshotOfOtherTile ? 1 - lane / 2 : lane / 2;
    a.saved.stick[a.saved.at(piece.head, 2 * n + half, first + lane % 2 * 8)] = lane & 1 ? of_row1 : of_row0;
  }

  /// s: the scores of tile n, then its weights.
  __device__ __forceinline__ void break_scores(int n) {
    const Problem& problem = a.problem;
    const int first_key = n * kKeyTile, lane = fused::lane_in_quad();
    if (first_key + kKeyTile - 1 > last_visible(problem, piece.index * S::kRows + 64 * warpgroup)) {
      const int last[2] = {last_visible(problem, row()), last_visible(problem, row() + 8)};
      hide<4>(s, last, first_key, lane);
    }
    if (problem.keep)
      hide_padded<4>(s, problem.keep + int64_t{piece.head / problem.heads} * problem.keep_words + first_key / 32, lane);
    const float near[2] = {stick[0], stick[1]};
    float middle[2];
    break_tile<Element>(s, problem.logit_scale, stick, middle);
    save_sticks(n, near, middle);
  }

  __device__ __forceinline__ void begin() {
    fused::clear(o);
    has_total = false;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      stick[h] = 1.0F;
      nearer[h] = row() + 8 * h < a.problem.seqlen_q ? 1.0F : 0.0F;  // rows past the end need no keys
    }
  }

  /// The scores of tile n beside the values of tile n + 1, then the sticks of n.
  __device__ __forceinline__ void step(int n) {
    const int stage = tile % S::kStages, before = (tile - 1) % S::kStages;
    shared.key_full(stage).wait(tile / S::kStages % 2);
    shared.value_full(before).wait((tile - 1) / S::kStages % 2);
    take_turn();
    issue_scores(stage);
    issue_values(before);
    pass_turn();
    hopper::wait<1>();
    hopper::pin(s);
    fused::release(shared.key_empty(stage));
    if (n == 0) fused::release(shared.query_empty);
    const bool new_segment = n % kSegmentTiles == kSegmentTiles - 1;
    const float weight[2] = {nearer[0], nearer[1]};
    if (new_segment) {
#pragma unroll
      for (int h = 0; h < 2; ++h) nearer[h] *= stick[h], stick[h] = 1.0F;
    }
    break_scores(n);
    hopper::wait<0>();
    hopper::pin(o);
    if (new_segment) end_segment(weight);
    fused::release(shared.value_empty(before));
    fused::round_to_operand<Element>(p, s);
    ++tile;
  }

  /// o := O of all segments up to this one.
  __device__ __forceinline__ void combine(const float (&weight)[2]) {
    const float4* mine = my_total();
#pragma unroll
    for (int i = 0; i < kHeadDim / 8; ++i) {
      const float4 x = has_total ? mine[i * S::kConsumers] : make_float4(0.0F, 0.0F, 0.0F, 0.0F);
      o[4 * i] = fmaf(weight[0], o[4 * i], x.x), o[4 * i + 1] = fmaf(weight[0], o[4 * i + 1], x.y);
      o[4 * i + 2] = fmaf(weight[1], o[4 * i + 2], x.z), o[4 * i + 3] = fmaf(weight[1], o[4 * i + 3], x.w);
    }
  }
  __device__ __forceinline__ void end_segment(const float (&weight)[2]) {
    combine(weight);
    float4* mine = my_total();
#pragma unroll
    for (int i = 0; i < kHeadDim / 8; ++i)
      mine[i * S::kConsumers] = make_float4(o[4 * i], o[4 * i + 1], o[4 * i + 2], o[4 * i + 3]);
    fused::clear(o);
    has_total = true;
  }

  __device__ __forceinline__ bool used_up() const {
    constexpr float kNothing = kDefect == Defect::kStopOnThreshold ? 0x1p-24F : 0.0F;
    return all_agree(fminf(stick[0], nearer[0]) <= kNothing && fminf(stick[1], nearer[1]) <= kNothing, S::kConsumers);
  }

  /// Tiles n, n − 1, … until the sticks are used up; returns the first that was not needed, −1 if all were.
  __device__ __forceinline__ int walk(int n, int pieces) {
    for (int done = 1, check = 2;; done = check, check += max(1, check / 2)) {
      for (const int end = max(n - (check - done), -1); n > end; --n) step(n);
      if (n < 0) return n;
      if (!used_up() && !(kDefect == Defect::kStopOneTileEarly && n == 0)) continue;
      if (threadIdx.x == 128) shared.notes->stop = pieces + 1;
      fused::release(shared.query_empty);
      return n;
    }
  }

  /// Tiles n, n − 1, … that were on their way when the block stopped.
  __device__ __forceinline__ void drain(int n) {
    for (bool last = false; n >= 0 && !last; --n, ++tile) {
      const int stage = tile % S::kStages;
      shared.key_full(stage).wait(tile / S::kStages % 2);
      last = shared.notes->last[stage] != 0;
      shared.value_full(stage).wait(tile / S::kStages % 2);
      fused::release(shared.key_empty(stage));
      fused::release(shared.value_empty(stage));
    }
  }

  __device__ __forceinline__ void finish() {
    const int batch = piece.head / a.problem.heads, head = piece.head % a.problem.heads;
    combine(nearer);
#pragma unroll
    for (int i = 0; i < kHeadDim / 2; ++i) o[i] += 0.0F;  // −0 becomes 0: which of them stands here depends on where we stopped
    const int first = row(), rows = a.problem.seqlen_q, lane = fused::lane_in_quad();
    constexpr float kFactor = 1.0F / kWeightScale<Element>;
    const float factor[2] = {kFactor, kFactor};
    if (a.out.data == nullptr) return;
#pragma unroll
    for (int h = 0; h < 2; ++h)
      if (lane == 0 && first + 8 * h < rows) a.rem[a.rem_strides.at(batch, head, first + 8 * h)] = nearer[h] * stick[h];
    fused::store_rows<Element>(a.out, batch, head, first, rows, a.problem.head_dim_v, o, factor, lane);
  }

  __device__ __forceinline__ void attend(int pieces) {
    begin();
    const int tiles = visible_tiles(a.problem, piece.index * S::kRows + S::kRows - 1, kKeyTile), first = tile % S::kStages;
    shared.key_full(first).wait(tile / S::kStages % 2);
    take_turn();
    issue_scores(first);
    pass_turn();
    hopper::wait<0>();
    hopper::pin(s);
    fused::release(shared.key_empty(first));
    if (tiles == 1) fused::release(shared.query_empty);
    break_scores(tiles - 1);
    fused::round_to_operand<Element>(p, s);
    ++tile;
    const int rest = walk(tiles - 2, pieces), farthest = (tile - 1) % S::kStages;
    shared.value_full(farthest).wait((tile - 1) / S::kStages % 2);
    issue_values(farthest);
    hopper::wait<0>();
    hopper::pin(o);
    fused::release(shared.value_empty(farthest));
    drain(rest);
    const int block = piece.index * S::kRows + 64 * warpgroup;
    if (threadIdx.x % 128 == 0 && a.saved.stick != nullptr && block < a.saved.padded_rows)
      a.saved.first_tile[a.saved.block_at(piece.head, block)] = 2 * (rest + 1);
    finish();
  }

  __device__ __forceinline__ void consume() {
    if (warpgroup == S::kWarpgroups - 1) pass_turn();
    for (int pieces = 0;; ++pieces) {
      shared.query_full.wait(pieces % 2);
      const int number = __shfl_sync(~0U, threadIdx.x % 32 == 0 ? shared.notes->piece : 0, 0);
      if (number < 0) break;
      piece = fused::piece_of(a.work, number);
      attend(pieces);
    }
    if (warpgroup == 0) take_turn();
  }
};

template <class Element, int kHeadDim>
__global__ void __launch_bounds__(Shape<kHeadDim>::kThreads, 1) forward_kernel(const __grid_constant__ ForwardArgs a) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) char memory[];
  __shared__ __align__(8) uint64_t barriers[Shape<kHeadDim>::kBarriers];
  __shared__ ForwardNotes notes;
  const Shared<kHeadDim> shared(memory, barriers, &notes);
  if (threadIdx.x == 0) shared.init();
  __syncthreads();
  if (__shfl_sync(~0U, threadIdx.x / 128, 0) == 0) {
    hopper::give_up_registers<Shape<kHeadDim>::kProducerRegisters>();
    if (threadIdx.x == 0) ForwardProducer<kHeadDim>{a, shared}.produce_all();
  } else {
    hopper::take_registers<Shape<kHeadDim>::kConsumerRegisters>();
    Consumer<Element, kHeadDim>(a, shared, threadIdx.x - 128).consume();
  }
#endif
}

template <class Element, int kHeadDim>
KernelInfo info() {
  using S = Shape<kHeadDim>;
  return {.function = reinterpret_cast<const void*>(forward_kernel<Element, kHeadDim>),
          .name = "stick-breaking fused forward",
          .threads = S::kThreads,
          .shared_bytes = S::kSharedBytes,
          .rows = S::kRows};
}

}  // namespace

KernelInfo forward_kernel_of(ElementType type, int padded_head_dim) {
  return fused::choose(type, padded_head_dim, []<class E, int kHeadDim>(fused::Instance<E, kHeadDim>) { return info<E, kHeadDim>(); });
}

}  // namespace attest::stick
