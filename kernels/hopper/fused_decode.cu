// softmax.cuda.fused, forward for few queries: a block works out what one segment of 512 keys leaves for 16 rows, the queries of a
// KV head's group, and takes such pieces of work in turns; fused_combine.cu does the rest. Contract: fused_forward.cu, whose sums
// these are in the same order. A tile's scores are cut by keys (warp w: keys 32w … 32w + 31, one group of the sum of l), its
// values by columns, so that four warps share a tile and nothing is summed across them but l. One more warp copies.
#include "kernels/hopper/fused_decode_warp.cuh"
#include "kernels/hopper/fused_segments.cuh"

namespace attest::fused {

/// Neighbours in number share their keys, then differ by head.
__device__ __forceinline__ DecodeWork work_of(const DecodeArgs& a, int number) {
  const int heads_kv = a.problem.heads / a.problem.group, of_all = number / a.row_tiles, rest = of_all / heads_kv;
  DecodeWork w{number % a.row_tiles, of_all % heads_kv, rest % a.problem.batch, rest / a.problem.batch, 0, 0};
  w.first_tile = w.segment * kSegmentTiles;
  w.last_tile = min(w.first_tile + kSegmentTiles, (a.problem.seqlen_kv + kKeyTile - 1) / kKeyTile) - 1;
  return w;
}

namespace {

/// What warps tell each other of a tile, each part read between two meetings of all of them and written between others; and the
/// queries of a piece.
template <int kHeadDim>
struct Exchange {
  using S = DecodeShape<kHeadDim>;
  float largest[S::kWarps][kRowTile];
  float sums[S::kWarps][2][32];
  __align__(16) char weights[kRowTile * S::kWeightPitch];
  __align__(16) char query[kRowTile * S::kQueryPitch];
};

template <int kHeadDim>
using Shape = DecodeShape<kHeadDim>;
template <int kHeadDim>
using Ring = DecodeRing<kHeadDim>;
using Work = DecodeWork;
using Row = DecodeRow;

template <class Element, int kHeadDim>
struct Consumer : DecodeWarp<kHeadDim> {
  using S = Shape<kHeadDim>;
  using Base = DecodeWarp<kHeadDim>;
  using Base::ring, Base::warp, Base::lane, Base::at;
  const DecodeArgs& a;
  Exchange<kHeadDim>& exchange;
  float s[16], o[S::kColumns / 2];
  Running run;
  bool upper;           // whether the row tile has more than 8 rows; if not, what the other 8 hold is never used

  __device__ __forceinline__ Consumer(const DecodeArgs& args, const Ring<kHeadDim>& r, Exchange<kHeadDim>& e)
      : Base(r), a(args), exchange(e) {}

  __device__ __forceinline__ void hide_unseen(const Work& w, const int (&last)[2], int first_key) {
    if (first_key + 31 > __shfl_sync(~0U, last[0], 0)) hide(s, last, first_key, 2 * (lane % 4));
    if (a.problem.keep)
      hide_padded(s, a.problem.keep + int64_t{w.batch} * a.problem.keep_words + first_key / 32, 2 * (lane % 4));
  }

  template <int h>
  __device__ __forceinline__ void tell_largest() {
    const float largest = quad_max(group_max<h>(s));
    if (lane % 4 == 0) exchange.largest[warp][lane / 4 + 8 * h] = largest;
  }
  template <int h>
  __device__ __forceinline__ void soften() {
    const int row = lane / 4 + 8 * h;
    const float c = a.problem.logit_scale;
    const auto largest = [&](int w) { return exchange.largest[w][row]; };
    const float minus_m = raise_reference(run, h, fmaxf(fmaxf(largest(0), largest(1)), fmaxf(largest(2), largest(3))) * c);
    exchange.sums[warp][h][lane] = group_exponentials<h>(s, c, minus_m);
    char* weights = exchange.weights + row * S::kWeightPitch + 2 * (32 * warp + 2 * (lane % 4));
#pragma unroll
    for (int b = 0; b < 4; ++b)
      *reinterpret_cast<uint32_t*>(weights + 16 * b) = hopper::pack<Element>(s[4 * b + 2 * h], s[4 * b + 2 * h + 1]);
  }
  template <int h>
  __device__ __forceinline__ void add_sums() {
    const auto sum = [&](int w) { return exchange.sums[w][h][lane]; };
    run.l[h] = fmaf(run.l[h], run.rescale[h], (sum(0) + sum(1)) + (sum(2) + sum(3)));
  }

  __device__ __forceinline__ void add_tile() {
#pragma unroll
    for (int i = 0; i < S::kColumns / 2; ++i) o[i] *= run.rescale[i / 2 % 2];
    const uint32_t tile = ring.tile(at.stage);
#pragma unroll
    for (int k = 0; k < kKeyTile / 16; ++k)
      this->template add_values<Element>(o, exchange.weights, k,
                                         [&](int chunk) { return tile + in_tile(16 * k + lane % 16, chunk); });
  }

  __device__ __forceinline__ void step(const Work& w, const int (&last)[2], int tile) {
    ring.full(at.stage).wait(at.phase);
    this->template score<Element>(s, 32 * warp + lane % 8 + lane / 16 * 8, 16);
    this->release_tile();
    hide_unseen(w, last, tile * kKeyTile + 32 * warp);
    tell_largest<0>();
    if (upper) tell_largest<1>();
    this->meet_warps();
    soften<0>();
    if (upper) soften<1>();
    this->meet_warps();
    add_sums<0>();
    if (upper) add_sums<1>();
    ring.full(at.stage).wait(at.phase);
    add_tile();
    this->release_tile();
  }

  __device__ __forceinline__ void leave(const Work& w, int h, const Row& r) const {
    const float l = quad_sum(run.l[h]);
    if (!r.exists) return;
    const int64_t row = (int64_t{w.batch} * a.problem.heads + r.head) * a.problem.seqlen_q + r.query;
    if (warp == 0 && lane % 4 == 0) *a.partials.sums_at(row, w.segment) = make_float2(run.m[h], l);
    this->leave_columns(o, h, a.partials.at(row, w.segment), a.partials.pitch);
  }

  __device__ __forceinline__ void attend(const Work& w) {
    const Row rows[2] = {Row(a.problem, w, lane / 4), Row(a.problem, w, lane / 4 + 8)};
    const int last[2] = {last_visible(a.problem, rows[0].query), last_visible(a.problem, rows[1].query)};
    upper = a.problem.group * a.problem.seqlen_q > kRowTile * w.row_tile + 8;
    ring.query_full().wait(this->filled);
    this->load_query(exchange.query);
    run.clear();
    run.rescale[1] = 1.0F;
    clear(o);
#pragma unroll 1
    for (int n = w.last_tile; n >= w.first_tile; --n) step(w, last, n);
    leave(w, 0, rows[0]);
    leave(w, 1, rows[1]);
  }
  __device__ __forceinline__ void consume() {
#pragma unroll 1
    for (int number = blockIdx.x; number < a.count; number += gridDim.x) attend(work_of(a, number));
  }
};

template <class Element, int kHeadDim>
__global__ void __launch_bounds__(Shape<kHeadDim>::kThreads, 1) decode_kernel(const __grid_constant__ DecodeArgs a) {
  extern __shared__ __align__(1024) char memory[];
  __shared__ __align__(8) uint64_t barriers[Ring<kHeadDim>::kBarriers];
  __shared__ Exchange<kHeadDim> exchange;
  hopper::launch_dependents();
  const Ring<kHeadDim> ring{(hopper::shared_address(memory) + 1023) & ~1023U, hopper::shared_address(barriers)};
  if (threadIdx.x == 0) ring.init();
  __syncthreads();
  if (threadIdx.x < 32 * Shape<kHeadDim>::kWarps)
    Consumer<Element, kHeadDim>(a, ring, exchange).consume();
  else
    produce_decode<kHeadDim>(
        a, ring, exchange.query,
        [&](const CUtensorMap& map, int tile, int slot, const Work& w) {
          load_rows<kHeadDim, kKeyTile>(ring.tile(slot), map, ring.full(slot), tile * kKeyTile, w.kv_head, w.batch);
        },
        [](const Work&, int) { return true; }, [](int) {});
}

template <class Element, int kHeadDim>
KernelInfo decode_info() {
  using S = Shape<kHeadDim>;
  return {.function = reinterpret_cast<const void*>(decode_kernel<Element, kHeadDim>),
          .name = "softmax fused decode",
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

}  // namespace attest::fused
