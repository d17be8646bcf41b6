// softmax.cuda.mma_sync, forward. A block of four warps owns 64 queries of a head, 16 a warp, and up to 128 columns of out; it walks
// the keys from the nearest tile to the farthest, with scores, weights and sums in registers.
//
// Reduction contract: that of kernels/hopper/fused_forward.cu, word for word, by its own functions (fused_soften.cuh,
// fused_segments.cuh); only the products are m16n8k16, which sum as wgmma does. So the bits are those of softmax.cuda.fused. A row
// begins at the nearest tile that its block sees rather than its warpgroup's: tiles without a visible key change nothing.
#include "kernels/ampere/launch.cuh"
#include "kernels/ampere/slabs.cuh"
#include "kernels/ampere/stores.cuh"
#include "kernels/hopper/fused_segments.cuh"

namespace attest::portable {
namespace {

using fused::kKeyTile;
using fused::kSegmentTiles;

int shared_bytes(const ForwardArgs& a, int width) {
  return (a.q.slabs() + kStages) * kSlabBytes + width / 8 * kThreads * static_cast<int>(sizeof(float4));
}

template <class Element, int kWidth>
struct Forward {
  const ForwardArgs& a;
  const Work work;
  const Sequence s;
  const Chunk chunk;
  const int first_row, key_slabs, value_slabs, tiles;
  float o[kWidth / 2] = {}, z[64];
  fused::Running run;
  fused::Total total;
  fused::Dominant dominant;

  __device__ __forceinline__ explicit Forward(const ForwardArgs& args)
      : a(args),
        work(work_of(args.problem.sequences, args.problem.heads, args.chunks)),
        s(args.problem.sequence(work.sequence)),
        chunk(work.chunk, args.v.columns),
        first_row(((args.problem.most_q + kTile - 1) / kTile - 1 - work.tile) * kTile),
        key_slabs(args.k.slabs()),
        value_slabs(chunk.slabs()),
        tiles(args.problem.visible_tiles(s, first_row + kTile - 1, kKeyTile)) {}

  __device__ __forceinline__ float4* my_total() const {
    return reinterpret_cast<float4*>(shared_memory + (key_slabs + kStages) * kSlabBytes) + threadIdx.x;
  }

  __device__ __forceinline__ void begin() {
    run.clear();
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      total.m[h] = -INFINITY;
      total.l[h] = 0.0F;
      dominant.logit[h] = a.dominant == nullptr ? INFINITY : -INFINITY;
      dominant.key[h] = -1;
    }
  }

  __device__ __forceinline__ void hide(int first_key) {
    const Problem& p = a.problem;
    if (first_key + kKeyTile - 1 > p.last_visible(s, first_row + warp_row())) {
      const int row = first_row + fused::row_in_warpgroup();
      const int last[2] = {p.last_visible(s, row), p.last_visible(s, row + 8)};
      fused::hide(z, last, first_key, 2 * fused::lane_in_quad());
    }
    if (p.keep == nullptr) return;
    uint32_t words[4];
    p.kept_words(s, first_key, words);
    fused::hide_padded(z, words, 2 * fused::lane_in_quad());
  }

  __device__ __forceinline__ void end_segment() {
    float keep[2], add[2];
    fused::combine(total, run, keep, add);
    run.clear();
    dominant.raise<0>(total.m[0] + hopper::log2_fast(total.l[0]));
    dominant.raise<1>(total.m[1] + hopper::log2_fast(total.l[1]));
    fused::combine(o, my_total(), kThreads, keep, add);
#pragma unroll
    for (int i = 0; i < kWidth / 8; ++i)
      my_total()[i * kThreads] = make_float4(o[4 * i], o[4 * i + 1], o[4 * i + 2], o[4 * i + 3]);
    fused::clear(o);
  }

  __device__ __forceinline__ void rescale() {
    if (!__any_sync(~0U, run.rescale[0] != 1.0F || run.rescale[1] != 1.0F)) return;
#pragma unroll
    for (int i = 0; i < kWidth / 2; ++i) o[i] *= run.rescale[i / 2 % 2];
  }

  template <class Slabs>
  __device__ __forceinline__ void step(Slabs& slabs, int n) {
    fused::clear(z);
#pragma unroll 1
    for (int c = 0; c < key_slabs; ++c)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        multiply_slab<Element>(z + 32 * half, shared_slabs() + c * kSlabBytes, slabs.next(), a.problem.sign_mask, a.problem.sign_flip);
    if (n % kSegmentTiles == kSegmentTiles - 1 && n + 1 < tiles) end_segment();
    hide(n * kKeyTile);
    fused::soften_tile(z, a.problem.logit_scale, run, dominant, n * kKeyTile);
    rescale();
    uint32_t weights[32];
    fused::round_to_operand<Element>(weights, z);
#pragma unroll
    for (int c = 0; c < kWidth / 64; ++c)
      if (c < value_slabs)
#pragma unroll
        for (int half = 0; half < 2; ++half) accumulate_slab<Element>(o + 32 * c, weights + 16 * half, slabs.next());
  }

  __device__ __forceinline__ void finish() {
    float keep[2], add[2], factor[2];
    fused::combine(total, run, keep, add);
    fused::combine(o, my_total(), kThreads, keep, add);
    const int row = first_row + fused::row_in_warpgroup();
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const bool sees = total.l[h] > 0.0F;
      const float log2_sum = total.m[h] + hopper::log2_fast(total.l[h]);
      factor[h] = sees ? 1.0F / total.l[h] : 0.0F;
      if (fused::lane_in_quad() != 0 || row + 8 * h >= s.n_q || chunk.first != 0) continue;
      a.lse[a.lse_strides.at(s.batch, work.head, s.q_begin + row + 8 * h)] = sees ? log2_sum * fused::kLn2 : -INFINITY;
      if (a.dominant != nullptr)
        a.dominant[a.problem.row_of_all(s, work.head, row + 8 * h)] = dominant.logit[h] - log2_sum > -1.0F ? dominant.key[h] : -1;
    }
    store_queries<Element>(a.out, chunk, s, work.head, first_row, o, factor);
  }

  __device__ __forceinline__ void attend() {
    if (first_row >= s.n_q) return;
    const int kv_head = work.head / a.problem.group;
    const Source queries = queries_of(a.q, s, work.head);
#pragma unroll 1
    for (int c = 0; c < key_slabs; ++c) load_slab<1>(queries, first_row, c, shared_slabs() + c * kSlabBytes);
    Stream slabs(
        [&](int step, int i, uint32_t to) {
          const int row = (tiles - 1 - step) * kKeyTile + i % 2 * kTile;
          const bool key = i < 2 * key_slabs;
          load_slab<1>(keys_of(key ? a.k : a.v, a.problem, s, kv_head), row, key ? i / 2 : chunk.first_slab() + i / 2 - key_slabs, to);
        },
        shared_slabs() + key_slabs * kSlabBytes, tiles, 2 * (key_slabs + value_slabs));
    begin();
#pragma unroll 1
    for (int n = tiles - 1; n >= 0; --n) step(slabs, n);
    finish();
  }
};

template <class Element, int kWidth>
__global__ void __launch_bounds__(kThreads, 2) forward_kernel(const __grid_constant__ ForwardArgs a) {
  Forward<Element, kWidth>(a).attend();
}

}  // namespace

void launch_softmax_forward(const AttentionParams& p, const ForwardArgs& a) {
  const int64_t blocks = a.chunks * int64_t{a.problem.sequences} * a.problem.heads * tiles_of(a.problem.most_q);
  choose(p.type, a.v.columns, [&]<class Element, int kWidth>(Instance<Element, kWidth>) {
    launch(forward_kernel<Element, kWidth>, "softmax mma_sync forward", p, a, blocks, shared_bytes(a, kWidth));
  });
}

}  // namespace attest::portable
