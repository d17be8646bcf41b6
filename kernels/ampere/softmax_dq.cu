// softmax.cuda.mma_sync, dq. A block of four warps owns 64 queries of a head, 16 a warp, and up to 128 columns of dq; it walks the
// keys in tiles of 64 from the nearest to the farthest, and that twice.
//
// Reduction contract: that of kernels/hopper/fused_backward_dq.cu. With P_j = 2^(c·s_j − lse2) and d_j = dP_j − r: first σ = Σ P_j d_j
// (fma) and ρ = Σ P_j in fp32, per lane in the order of its registers, over the quad (0+1)+(2+3); e = dlse − σ/ρ. Then dq = scale ·
// Σ round(P_j (d_j + e)) k_j by k16 products, in a tile j ascending. Tiles that no row sees are left out: they add exact zeros.
#include "kernels/ampere/launch.cuh"
#include "kernels/ampere/slabs.cuh"
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
  const int first_row, key_slabs, value_slabs, tiles;
  float g[kWidth / 2] = {}, z[32], dp[32];
  float minus_lse2[2], reference[2], shift[2], sigma[2] = {}, rho[2] = {};

  __device__ __forceinline__ explicit Dq(const BackwardArgs& args)
      : a(args),
        work(work_of(args.problem.sequences, args.problem.heads, args.chunks)),
        s(args.problem.sequence(work.sequence)),
        chunk(work.chunk, args.q.columns),
        first_row(((args.problem.most_q + kTile - 1) / kTile - 1 - work.tile) * kTile),
        key_slabs(args.k.slabs()),
        value_slabs(args.v.slabs()),
        tiles(args.problem.visible_tiles(s, first_row + kTile - 1, kTile)) {}

  __device__ __forceinline__ int row() const { return first_row + fused::row_in_warpgroup(); }

  /// What the row is: rows past the end have weights of 0.
  __device__ __forceinline__ void begin() {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const bool exists = row() + 8 * h < s.n_q;
      const int64_t at = a.problem.row_of_all(s, work.head, exists ? row() + 8 * h : 0);
      minus_lse2[h] = exists ? -a.values.lse2[at] : -INFINITY;
      reference[h] = exists ? a.values.reference[at] : 0.0F;
      shift[h] = 0.0F;
      if (exists && a.dlse.data != nullptr && minus_lse2[h] != -INFINITY)
        shift[h] = a.dlse.data[a.dlse.strides.at(s.batch, work.head, s.q_begin + row() + 8 * h)];
    }
  }

  /// z := P of tile n, dp := dP.
  template <class Slabs>
  __device__ __forceinline__ void weights(Slabs& slabs, int n) {
    fused::clear(z), fused::clear(dp);
#pragma unroll 1
    for (int c = 0; c < key_slabs; ++c)
      multiply_slab<Element>(z, shared_slabs() + c * kSlabBytes, slabs.next(), a.problem.sign_mask, a.problem.sign_flip);
#pragma unroll 1
    for (int c = 0; c < value_slabs; ++c)
      multiply_slab<Element>(dp, shared_slabs() + (key_slabs + c) * kSlabBytes, slabs.next());
    const int first_key = n * kTile;
    const Problem& p = a.problem;
    if (first_key + kTile - 1 > p.last_visible(s, first_row + warp_row())) {
      const int last[2] = {p.last_visible(s, row()), p.last_visible(s, row() + 8)};
      fused::hide(z, last, first_key, 2 * fused::lane_in_quad());
    }
    if (p.keep != nullptr) {
      uint32_t words[2];
      p.kept_words(s, first_key, words);
      fused::hide_padded(z, words, 2 * fused::lane_in_quad());
    }
#pragma unroll
    for (int i = 0; i < 32; ++i) z[i] = hopper::exp2_fast(fmaf(z[i], p.logit_scale, minus_lse2[i / 2 % 2]));
  }

  template <class Slabs>
  __device__ __forceinline__ void sum_step(Slabs& slabs, int n) {
    weights(slabs, n);
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      const int h = i / 2 % 2;
      sigma[h] = fmaf(z[i], dp[i] - reference[h], sigma[h]);
      rho[h] += z[i];
    }
  }
  /// The row's shift, for dk and dv too. A row without a visible key has ρ = 0.
  __device__ __forceinline__ void end_sums() {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float weight = fused::quad_sum(rho[h]), sum = fused::quad_sum(sigma[h]);
      shift[h] -= weight > 0.0F ? sum / weight : 0.0F;
      if (chunk.first == 0 && fused::lane_in_quad() == 0 && row() + 8 * h < s.n_q)
        a.values.shift[a.problem.row_of_all(s, work.head, row() + 8 * h)] = shift[h];
    }
  }
  template <class Slabs>
  __device__ __forceinline__ void step(Slabs& slabs, int n) {
    weights(slabs, n);
#pragma unroll
    for (int i = 0; i < 32; ++i) z[i] *= dp[i] - reference[i / 2 % 2] + shift[i / 2 % 2];
    uint32_t dz[16];
    fused::round_to_operand<Element>(dz, z);
#pragma unroll
    for (int c = 0; c < kWidth / 64; ++c)
      if (c < chunk.slabs()) accumulate_slab<Element>(g + 32 * c, dz, slabs.next());
  }

  __device__ __forceinline__ void own() {
    if (first_row >= s.n_q) return;
    const int kv_head = work.head / a.problem.group, both = key_slabs + value_slabs;
    const Source queries = queries_of(a.q, s, work.head), douts = queries_of(a.dout, s, work.head);
#pragma unroll 1
    for (int c = 0; c < key_slabs; ++c) load_slab<1>(queries, first_row, c, shared_slabs() + c * kSlabBytes);
#pragma unroll 1
    for (int c = 0; c < value_slabs; ++c) load_slab<1>(douts, first_row, c, shared_slabs() + (key_slabs + c) * kSlabBytes);
    const auto load = [&](int step, int i, uint32_t to) {
      const int key = (tiles - 1 - step) * kTile;
      const bool value = i >= key_slabs && i < both;
      const int slab = value ? i - key_slabs : i < key_slabs ? i : chunk.first_slab() + i - both;
      load_slab<1>(keys_of(value ? a.v : a.k, a.problem, s, kv_head), key, slab, to);
    };
    const uint32_t ring = shared_slabs() + both * kSlabBytes;
    begin();
    {
      Stream slabs(load, ring, tiles, both);
#pragma unroll 1
      for (int n = tiles - 1; n >= 0; --n) sum_step(slabs, n);
    }
    end_sums();
    __syncthreads();
    Stream slabs(load, ring, tiles, both + chunk.slabs());
#pragma unroll 1
    for (int n = tiles - 1; n >= 0; --n) step(slabs, n);
    const float factor[2] = {a.dq_scale, a.dq_scale};
    store_queries<Element>(a.dq, chunk, s, work.head, first_row, g, factor);
  }
};

template <class Element, int kWidth>
__global__ void __launch_bounds__(kThreads, 2) dq_kernel(const __grid_constant__ BackwardArgs a) {
  Dq<Element, kWidth>(a).own();
}

}  // namespace

void launch_softmax_dq(const AttentionParams& p, const BackwardArgs& a) {
  const int64_t blocks = a.chunks * int64_t{a.problem.sequences} * a.problem.heads * tiles_of(a.problem.most_q);
  choose(p.type, a.q.columns, [&]<class Element, int kWidth>(Instance<Element, kWidth>) {
    launch(dq_kernel<Element, kWidth>, "softmax mma_sync dq", p, a, blocks, shared_bytes(a));
  });
}

}  // namespace attest::portable
