// stickbreaking.cuda.mma_sync, dq. A block of four warps owns 64 queries of a head, 16 a warp, and up to 128 columns of dq; tiles of 64
// keys, from the farthest that the forward visited to the nearest: F, what a query's farther keys and its remainder are worth, grows.
//
// Reduction contract: that of kernels/hopper/stick_backward_dq.cu, by its own functions (stick_scan_backward.cuh).
#include "kernels/ampere/launch.cuh"
#include "kernels/ampere/slabs.cuh"
#include "kernels/ampere/stick_rows.cuh"
#include "kernels/ampere/stores.cuh"

namespace attest::portable {
namespace {

int shared_bytes(const BackwardArgs& a) { return (a.q.slabs() + a.dout.slabs() + kStages) * kSlabBytes; }

template <class Element, int kWidth>
struct Dq {
  const BackwardArgs& a;
  const Work work;
  const Sequence s;
  const Chunk chunk;
  const int first_row, key_slabs, value_slabs;
  float dq[kWidth / 2] = {}, z[32], dp[32], rest[16];
  float far[2], scale[2];

  __device__ __forceinline__ explicit Dq(const BackwardArgs& args)
      : a(args),
        work(work_of(args.problem.sequences, args.problem.heads, args.chunks)),
        s(args.problem.sequence(work.sequence)),
        chunk(work.chunk, args.q.columns),
        first_row(((args.problem.most_q + kTile - 1) / kTile - 1 - work.tile) * kTile),
        key_slabs(args.k.slabs()),
        value_slabs(args.v.slabs()) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      far[h] = remainder_worth(a, s, work.head, row() + 8 * h);
      scale[h] = stick::kScaled<Element> ? stick::kFirstScale : 1.0F;
    }
  }

  __device__ __forceinline__ int row() const { return first_row + fused::row_in_warpgroup(); }

  /// dz of a row that has become too large for the scale so far makes dq's smaller.
  __device__ __forceinline__ void rescale() {
    const float largest[2] = {fused::quad_max(stick::largest_of_row<0>(dp)), fused::quad_max(stick::largest_of_row<1>(dp))};
    float ratio[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float next = stick::next_scale(scale[h], largest[h]);
      ratio[h] = next / scale[h];
      scale[h] = next;
    }
#pragma unroll
    for (int i = 0; i < 32; ++i) dp[i] *= scale[i / 2 % 2];
    if (!__any_sync(~0U, ratio[0] != 1.0F || ratio[1] != 1.0F)) return;
#pragma unroll
    for (int i = 0; i < kWidth / 2; ++i) dq[i] *= ratio[i / 2 % 2];
  }

  template <int h>
  __device__ __forceinline__ void dlogits(int n) {
    const int lane = fused::lane_in_quad(), mine = row() + 8 * h;
    const int64_t at = tile_row(a, s, work.head, n, mine < s.n_q ? mine : 0);
    if (chunk.first == 0 && lane == h && mine < s.n_q) a.far[at] = far[h];
    const float prefix = stick::break_row<h>(z, rest, a.problem.logit_scale, mine < s.n_q ? a.sticks[at] : 0.0F, lane);
    const float sum = stick::weigh_row<Element, h>(z, rest, dp, prefix, nullptr);
    stick::dlogits_row<h>(z, rest, dp, sum, far[h], lane);
  }

  template <class Slabs>
  __device__ __forceinline__ void step(Slabs& slabs, int n) {
    fused::clear(z), fused::clear(dp);
#pragma unroll 1
    for (int c = 0; c < key_slabs; ++c)
      multiply_slab<Element>(z, shared_slabs() + c * kSlabBytes, slabs.next(), a.problem.sign_mask, a.problem.sign_flip);
#pragma unroll 1
    for (int c = 0; c < value_slabs; ++c)
      multiply_slab<Element>(dp, shared_slabs() + (key_slabs + c) * kSlabBytes, slabs.next());
    hide_keys(a.problem, s, z, first_row, n * kTile);
    dlogits<0>(n);
    dlogits<1>(n);
    if constexpr (stick::kScaled<Element>) rescale();
    uint32_t dz[16];
    fused::round_to_operand<Element>(dz, dp);
#pragma unroll
    for (int c = 0; c < kWidth / 64; ++c)
      if (c < chunk.slabs()) accumulate_slab<Element>(dq + 32 * c, dz, slabs.next());
  }

  __device__ __forceinline__ void own() {
    if (first_row >= s.n_q) return;
    const int kv_head = work.head / a.problem.group, both = key_slabs + value_slabs;
    const Source queries = queries_of(a.q, s, work.head), douts = queries_of(a.dout, s, work.head);
    const int first = a.first_tile[a.problem.row_of_all(s, work.head, first_row)];
    const int tiles = a.problem.visible_tiles(s, first_row + kTile - 1, kTile);
#pragma unroll 1
    for (int c = 0; c < key_slabs; ++c) load_slab<1>(queries, first_row, c, shared_slabs() + c * kSlabBytes);
#pragma unroll 1
    for (int c = 0; c < value_slabs; ++c) load_slab<1>(douts, first_row, c, shared_slabs() + (key_slabs + c) * kSlabBytes);
    Stream slabs(
        [&](int step, int i, uint32_t to) {
          const bool value = i >= key_slabs && i < both;
          const int slab = value ? i - key_slabs : i < key_slabs ? i : chunk.first_slab() + i - both;
          load_slab<8>(keys_of(value ? a.v : a.k, a.problem, s, kv_head), (first + step) * kTile, slab, to);
        },
        shared_slabs() + both * kSlabBytes, tiles - first, both + chunk.slabs());
#pragma unroll 1
    for (int n = first; n < tiles; ++n) step(slabs, n);
    const float factor[2] = {stick::finite(a.dq_scale * (1.0F / scale[0])), stick::finite(a.dq_scale * (1.0F / scale[1]))};
    store_queries<Element>(a.dq, chunk, s, work.head, first_row, dq, factor);
  }
};

template <class Element, int kWidth>
__global__ void __launch_bounds__(kThreads, 2) dq_kernel(const __grid_constant__ BackwardArgs a) {
  Dq<Element, kWidth>(a).own();
}

}  // namespace

void launch_stick_dq(const AttentionParams& p, const BackwardArgs& a) {
  const int64_t blocks = a.chunks * int64_t{a.problem.sequences} * a.problem.heads * tiles_of(a.problem.most_q);
  choose(p.type, a.q.columns, [&]<class Element, int kWidth>(Instance<Element, kWidth>) {
    launch(dq_kernel<Element, kWidth>, "stick-breaking mma_sync dq", p, a, blocks, shared_bytes(a));
  });
}

}  // namespace attest::portable
