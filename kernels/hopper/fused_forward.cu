// softmax.cuda.fused, forward. A block is one producer warp, which copies tiles to shared memory, and two or three consumer
// warpgroups of 64 queries each; blocks stay and take pieces of work (a head's block of queries) until none is left.
//
// Reduction contract. A row is owned by one warpgroup; its bits depend on its query, the keys it sees, their absolute indices
// and D alone. Keys are cut at multiples of 128 into tiles, and of 512 into segments; both are taken from the nearest to the
// farthest. s_j = Σ_d q_d k_jd: k16 products, d ascending, from zero. A segment begins with m = −∞, l = 0, o = 0; a tile does
//   t = c·max_j s_j (c = |scale|·log2 e); if t > m + 8: α = 2^(m−t), m = t, else α = 1;
//   p_j = 2^(c·s_j − m) by fma; l = fma(l, α, Σ p_j); o = o·α + Σ round(p_j) v_j: k16 products, j ascending.
// Lane x of four sums l over keys ≡ 2x, 2x+1 mod 8: groups of 32 keys ascending, then (0+1)+(2+3); a segment's l sums the
// lanes, (0+1)+(2+3). Segments meet by M' = max(M, m), a = 2^(M−M'), b = 2^(m−M'), X = fma(X, a, x·b) for l and o.
// out = o·(1/l), lse = (M + log2 l)·ln 2. Hidden keys have s = −∞, so weight 0. What a warp votes on is exactly neutral work.
#include "kernels/hopper/fused_forward_producer.cuh"
#include "kernels/hopper/fused_segments.cuh"

namespace attest::fused {
namespace {

using hopper::Barrier;
template <int kHeadDim>
using Shape = ForwardShape<kHeadDim>;
template <int kHeadDim>
using Shared = ForwardShared<kHeadDim>;

template <class Element, int kHeadDim, bool kSplit>
struct Consumer {
  using S = Shape<kHeadDim>;
  const ForwardArgs& a;
  const Shared<kHeadDim>& shared;
  const int warpgroup;
  const uint64_t query, keys, values;
  float o[kHeadDim / 2], s[64];
  uint32_t p[32];
  Running run;
  Total total;
  Dominant dominant;
  Piece piece;
  Span span;
  int tile = 0;  // tiles consumed so far, of all pieces

  __device__ __forceinline__ Consumer(const ForwardArgs& args, const Shared<kHeadDim>& sh, int id)
      : a(args),
        shared(sh),
        warpgroup(__shfl_sync(~0U, id / 128, 0)),
        query(hopper::operand(sh.query + warpgroup * 64 * 128)),
        keys(hopper::operand(sh.keys)),
        values(hopper::operand(sh.values, kKeyTile * 128)) {}

  __device__ __forceinline__ int row_in_block() const { return 64 * warpgroup + row_in_warpgroup(); }
  __device__ __forceinline__ float4* my_total() const { return shared.totals + (thread_in_block() - 128); }

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
    for (int k = 0; k < kKeyTile / 16; ++k)
      hopper::multiply_add<Element>(o, p + 4 * k, hopper::advance(values, stage * S::kTileBytes + k * 16 * 128));
    hopper::commit();
  }

  __device__ __forceinline__ void soften_scores(int first_key) {
    const Problem& problem = a.problem;
    const int row = span.block * S::kRows;  // of the block's first
    if (first_key + kKeyTile - 1 > last_visible(problem, row + 64 * warpgroup)) {
      const int last[2] = {last_visible(problem, row + row_in_block()), last_visible(problem, row + row_in_block() + 8)};
      hide(s, last, first_key, 2 * lane_in_quad());
    }
    if (problem.keep)
      hide_padded(s, problem.keep + int64_t{piece.head / problem.heads} * problem.keep_words + first_key / 32,
                  2 * lane_in_quad());
    soften_tile(s, problem.logit_scale, run, dominant, first_key);
  }

  __device__ __forceinline__ void begin() {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      total.m[h] = -INFINITY;
      dominant.logit[h] = kSplit || a.dominant == nullptr ? INFINITY : -INFINITY;
      total.l[h] = 0.0F;
      dominant.key[h] = -1;
    }
    run.clear();
    clear(o);
  }

  /// The scores of tile n beside the values of tile n + 1, then the softmax of n.
  __device__ __forceinline__ void step(int n) {
    const int stage = tile % S::kStages, before = (tile - 1) % S::kStages;
    shared.key_full(stage).wait(tile / S::kStages % 2);
    issue_scores(stage);
    shared.value_full(before).wait((tile - 1) / S::kStages % 2);
    issue_values(before);
    hopper::wait<1>();
    hopper::pin(s);
    release(shared.key_empty(stage));
    if (n == span.first) release(shared.query_empty);
    const int segment = kDefect == Defect::kSegmentsByBatch && a.problem.batch > 1 ? 2 * kSegmentTiles : kSegmentTiles;
    const bool new_segment = n % segment == segment - 1;
    float keep[2], add[2];
    float2 sums[2];
    if (kSplit && new_segment && span.leaves_segments) {
      sums_of_segment(sums);
      run.clear();
    } else if (new_segment) {
      combine(total, run, keep, add);
      run.clear();
      dominant.raise<0>(total.m[0] + hopper::log2_fast(total.l[0]));
      dominant.raise<1>(total.m[1] + hopper::log2_fast(total.l[1]));
    }
    soften_scores(first_key_of(n, span.end));
    hopper::wait<0>();
    hopper::pin(o);
    if (kSplit && new_segment && span.leaves_segments)
      leave((n + 1) / kSegmentTiles, sums), clear(o);
    else if (new_segment)
      end_segment(keep, add);
    else
      rescale();
    release(shared.value_empty(before));
    round_to_operand<Element>(p, s);
    ++tile;
  }

  __device__ __forceinline__ void rescale() {
    bool needed = __any_sync(~0U, run.rescale[0] != 1.0F || run.rescale[1] != 1.0F);
    if constexpr (kDefect == Defect::kRescaleByOneRow) needed = __shfl_sync(~0U, run.rescale[0] != 1.0F, 0);
    if (!needed) return;
#pragma unroll
    for (int i = 0; i < kHeadDim / 2; ++i) o[i] *= run.rescale[i / 2 % 2];
  }

  __device__ __forceinline__ void end_segment(const float (&keep)[2], const float (&add)[2]) {
    float4* mine = my_total();
    combine(o, mine, S::kConsumers, keep, add);
#pragma unroll
    for (int i = 0; i < kHeadDim / 8; ++i)
      mine[i * S::kConsumers] = make_float4(o[4 * i], o[4 * i + 1], o[4 * i + 2], o[4 * i + 3]);
    clear(o);
  }

  /// What is known of a segment, or of it and all nearer ones, for this thread's rows; sums: {m, l}.
  __device__ __forceinline__ void leave(int segment, const float2 (&sums)[2]) const {
    const int row = span.block * S::kRows + row_in_block(), lane = lane_in_quad();
    const int64_t of_all = int64_t{piece.head} * a.problem.seqlen_q + row;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const bool exists = row + 8 * h < a.problem.seqlen_q;
      hopper::store_if(exists && lane == 0, reinterpret_cast<float*>(a.partials.sums_at(of_all + 8 * h, segment)), sums[h].x,
                       sums[h].y);
      float* to = a.partials.at(of_all + 8 * h, segment) + 2 * lane;
#pragma unroll
      for (int b = 0; b < kHeadDim / 8; ++b)
        hopper::store_if(exists && 8 * b < a.partials.pitch, to + 8 * b, o[4 * b + 2 * h], o[4 * b + 2 * h + 1]);
    }
  }
  __device__ __forceinline__ void sums_of_segment(float2 (&sums)[2]) const {
#pragma unroll
    for (int h = 0; h < 2; ++h) sums[h] = make_float2(run.m[h], quad_sum(run.l[h]));
  }

  __device__ __forceinline__ void finish() {
    const int batch = piece.head / a.problem.heads, head = piece.head % a.problem.heads;
    float keep[2], add[2], factor[2];
    combine(total, run, keep, add);
    combine(o, my_total(), S::kConsumers, keep, add);
    if (kSplit) {
      const float2 sums[2] = {make_float2(total.m[0], total.l[0]), make_float2(total.m[1], total.l[1])};
      return leave(span.first / kSegmentTiles, sums);
    }
    const int row = span.block * S::kRows + row_in_block(), rows = a.problem.seqlen_q, lane = lane_in_quad();
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const bool sees = total.l[h] > 0.0F;
      const float log2_sum = total.m[h] + hopper::log2_fast(total.l[h]);
      factor[h] = sees ? 1.0F / total.l[h] : 0.0F;
      if (lane != 0 || row + 8 * h >= rows) continue;
      a.lse[a.lse_strides.at(batch, head, row + 8 * h)] = sees ? log2_sum * kLn2 : -INFINITY;
      if (a.dominant == nullptr) continue;
      const int64_t at = static_cast<int64_t>(piece.head) * rows + row + 8 * h;
      a.dominant[at] = dominant.logit[h] - log2_sum > -1.0F ? dominant.key[h] : -1;
    }
    store_rows<Element>(a.out, batch, head, row, rows, a.problem.head_dim, o, factor, lane);
  }

  __device__ __forceinline__ void attend() {
    begin();
    span = span_of<kSplit>(a, piece, S::kRows);
    const int first = tile % S::kStages;
    shared.key_full(first).wait(tile / S::kStages % 2);
    issue_scores(first);
    hopper::wait<0>();
    hopper::pin(s);
    release(shared.key_empty(first));
    if (span.end == span.first + 1) release(shared.query_empty);
    soften_scores(first_key_of(span.end - 1, span.end));
    round_to_operand<Element>(p, s);
    ++tile;
    for (int n = span.end - 2; n >= span.first; --n) step(n);
    const int farthest = (tile - 1) % S::kStages;
    shared.value_full(farthest).wait((tile - 1) / S::kStages % 2);
    issue_values(farthest);
    hopper::wait<0>();
    hopper::pin(o);
    release(shared.value_empty(farthest));
    if (kSplit && span.leaves_segments) {
      float2 sums[2];
      sums_of_segment(sums);
      leave(span.first / kSegmentTiles, sums);
    } else {
      finish();
    }
  }

  __device__ __forceinline__ void consume() {
    for (int pieces = 0;; ++pieces) {
      shared.query_full.wait(pieces % 2);
      const int number = __shfl_sync(~0U, threadIdx.x % 32 == 0 ? *shared.piece : 0, 0);
      if (number < 0) break;
      piece = piece_of(a.work, number);
      attend();
    }
  }
};

template <class Element, int kHeadDim, bool kSplit>
__global__ void __launch_bounds__(Shape<kHeadDim>::kThreads, 1) forward_kernel(const __grid_constant__ ForwardArgs a) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) char memory[];
  __shared__ __align__(8) uint64_t barriers[2 + 4 * Shape<kHeadDim>::kStages];
  __shared__ int piece;
  const Shared<kHeadDim> shared(memory, barriers, &piece);
  if (threadIdx.x == 0) shared.init();
  __syncthreads();
  if (kSplit) hopper::launch_dependents();
  if (__shfl_sync(~0U, threadIdx.x / 128, 0) == 0) {
    hopper::give_up_registers<Shape<kHeadDim>::kProducerRegisters>();
    if (threadIdx.x == 0) produce_forward<kSplit>(a, shared);
  } else {
    hopper::take_registers<Shape<kHeadDim>::kConsumerRegisters>();
    Consumer<Element, kHeadDim, kSplit>(a, shared, threadIdx.x - 128).consume();
  }
#endif
}

template <class Element, int kHeadDim, bool kSplit>
KernelInfo forward_info() {
  using S = Shape<kHeadDim>;
  return {.function = reinterpret_cast<const void*>(forward_kernel<Element, kHeadDim, kSplit>),
          .name = "softmax fused forward",
          .threads = S::kThreads,
          .shared_bytes = S::kSharedBytes,
          .rows = S::kRows};
}

}  // namespace

KernelInfo forward_kernel_of(ElementType type, int padded_head_dim) {
  return choose(type, padded_head_dim, []<class E, int kHeadDim>(Instance<E, kHeadDim>) { return forward_info<E, kHeadDim, false>(); });
}
#ifndef ATTEST_DEFECT  // faulty twins are never split
KernelInfo split_kernel_of(ElementType type, int padded_head_dim) {
  return choose(type, padded_head_dim, []<class E, int kHeadDim>(Instance<E, kHeadDim>) { return forward_info<E, kHeadDim, true>(); });
}
#endif

}  // namespace attest::fused
