// stickbreaking.cuda.mma_sync, forward. A block of four warps owns 64 queries of a head, 16 a warp, and up to 128 columns of out; it
// walks the keys from the nearest tile of 128 to the farthest, and stops where all its sticks are used up.
//
// Reduction contract: that of kernels/hopper/stick_forward.cu, by its own functions (stick_scan.cuh); only the products are m16n8k16,
// which sum as wgmma does. So the bits are those of stickbreaking.cuda.fused. Where a block stops depends on its 64 rows, not on
// 128 or 192: what would follow is exactly neutral, so that changes no bit.
#include "kernels/ampere/launch.cuh"
#include "kernels/ampere/slabs.cuh"
#include "kernels/ampere/stores.cuh"
#include "kernels/hopper/stick_scan.cuh"

namespace attest::portable {
namespace {

using stick::kKeyTile;
using stick::kSegmentTiles;
using stick::kWeightScale;

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
  float rest[2], nearer[2];  // the stick of the segment; of the segments before it (P)
  bool has_total = false;

  __device__ __forceinline__ explicit Forward(const ForwardArgs& args)
      : a(args),
        work(work_of(args.problem.sequences, args.problem.heads, args.chunks)),
        s(args.problem.sequence(work.sequence)),
        chunk(work.chunk, args.v.columns),
        first_row(((args.problem.most_q + kTile - 1) / kTile - 1 - work.tile) * kTile),
        key_slabs(args.k.slabs()),
        value_slabs(chunk.slabs()),
        tiles(args.problem.visible_tiles(s, first_row + kTile - 1, kKeyTile)) {
#pragma unroll
    for (int h = 0; h < 2; ++h) rest[h] = 1.0F, nearer[h] = row() + 8 * h < s.n_q ? 1.0F : 0.0F;  // rows past the end need no keys
  }

  __device__ __forceinline__ int row() const { return first_row + fused::row_in_warpgroup(); }
  __device__ __forceinline__ float4* my_total() const {
    return reinterpret_cast<float4*>(shared_memory + (key_slabs + kStages) * kSlabBytes) + threadIdx.x;
  }

  __device__ __forceinline__ void hide(int first_key) {
    const Problem& p = a.problem;
    if (first_key + kKeyTile - 1 > p.last_visible(s, first_row + warp_row())) {
      const int last[2] = {p.last_visible(s, row()), p.last_visible(s, row() + 8)};
      stick::hide<4>(z, last, first_key, fused::lane_in_quad());
    }
    if (p.keep == nullptr) return;
    uint32_t words[4];
    p.kept_words(s, first_key, words);
    stick::hide_padded<4>(z, words, fused::lane_in_quad());
  }

  /// Of tile n: its sticks before the nearest key (of the segment) and before the farther half.
  __device__ __forceinline__ void save_sticks(int n, const float (&near)[2], const float (&middle)[2]) const {
    const int lane = fused::lane_in_quad(), mine = row() + lane % 2 * 8;
    if (a.sticks == nullptr || chunk.first != 0 || mine >= s.n_q) return;
    const float of_row0 = nearer[0] * (lane & 2 ? near[0] : middle[0]), of_row1 = nearer[1] * (lane & 2 ? near[1] : middle[1]);
    const int64_t tile = static_cast<int64_t>(a.problem.of_all(s, work.head)) * a.key_tiles + 2 * n + lane / 2;
    a.sticks[tile * a.problem.seqlen_q + s.q_begin + mine] = lane & 1 ? of_row1 : of_row0;
  }

  /// z: the scores of tile n, then its weights.
  __device__ __forceinline__ void break_scores(int n) {
    hide(n * kKeyTile);
    const float near[2] = {rest[0], rest[1]};
    float middle[2];
    stick::break_tile<Element>(z, a.problem.logit_scale, rest, middle);
    save_sticks(n, near, middle);
  }

  /// o := O of all segments up to this one.
  __device__ __forceinline__ void combine() {
    const float4* mine = my_total();
#pragma unroll
    for (int i = 0; i < kWidth / 8; ++i) {
      const float4 x = has_total ? mine[i * kThreads] : make_float4(0.0F, 0.0F, 0.0F, 0.0F);
      o[4 * i] = fmaf(nearer[0], o[4 * i], x.x), o[4 * i + 1] = fmaf(nearer[0], o[4 * i + 1], x.y);
      o[4 * i + 2] = fmaf(nearer[1], o[4 * i + 2], x.z), o[4 * i + 3] = fmaf(nearer[1], o[4 * i + 3], x.w);
    }
  }
  __device__ __forceinline__ void end_segment() {
    combine();
    float4* mine = my_total();
#pragma unroll
    for (int i = 0; i < kWidth / 8; ++i)
      mine[i * kThreads] = make_float4(o[4 * i], o[4 * i + 1], o[4 * i + 2], o[4 * i + 3]);
    fused::clear(o);
    has_total = true;
#pragma unroll
    for (int h = 0; h < 2; ++h) nearer[h] *= rest[h], rest[h] = 1.0F;
  }

  template <class Slabs>
  __device__ __forceinline__ void step(Slabs& slabs, int n) {
    fused::clear(z);
#pragma unroll 1
    for (int c = 0; c < key_slabs; ++c)
#pragma unroll
      for (int half = 1; half >= 0; --half)
        multiply_slab<Element>(z + 32 * half, shared_slabs() + c * kSlabBytes, slabs.next(), a.problem.sign_mask, a.problem.sign_flip);
    if (n % kSegmentTiles == kSegmentTiles - 1 && n + 1 < tiles) end_segment();
    break_scores(n);
    uint32_t weights[32];
    fused::round_to_operand<Element>(weights, z);
#pragma unroll
    for (int c = 0; c < kWidth / 64; ++c)
      if (c < value_slabs)
#pragma unroll
        for (int half = 1; half >= 0; --half)  // the nearest sub-tile first
          accumulate_slab<Element, 2>(o + 32 * c, weights + 16 * half, slabs.next());
  }

  __device__ __forceinline__ bool used_up() const {
    return __syncthreads_and(fminf(rest[0], nearer[0]) == 0.0F && fminf(rest[1], nearer[1]) == 0.0F) != 0;
  }

  __device__ __forceinline__ void finish(int farthest) {
    combine();
#pragma unroll
    for (int i = 0; i < kWidth / 2; ++i) o[i] += 0.0F;  // −0 becomes 0: which of them stands here depends on where we stopped
    if (threadIdx.x == 0 && a.sticks != nullptr && chunk.first == 0)
      a.first_tile[a.problem.row_of_all(s, work.head, first_row)] = 2 * farthest;
    if (a.out.data == nullptr) return;
    constexpr float kFactor = 1.0F / kWeightScale<Element>;
    const float factor[2] = {kFactor, kFactor};
#pragma unroll
    for (int h = 0; h < 2; ++h)
      if (chunk.first == 0 && fused::lane_in_quad() == 0 && row() + 8 * h < s.n_q)
        a.lse[a.lse_strides.at(s.batch, work.head, s.q_begin + row() + 8 * h)] = nearer[h] * rest[h];
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
          const int key = (tiles - 1 - step) * kKeyTile + (1 - i % 2) * kTile;
          const bool score = i < 2 * key_slabs;
          load_slab<4>(keys_of(score ? a.k : a.v, a.problem, s, kv_head), key,
                       score ? i / 2 : chunk.first_slab() + i / 2 - key_slabs, to);
        },
        shared_slabs() + key_slabs * kSlabBytes, tiles, 2 * (key_slabs + value_slabs));
    int n = tiles, check = tiles - 2;
#pragma unroll 1
    while (n > 0) {
      step(slabs, --n);
      if (n > check || n == 0) continue;
      if (used_up()) break;
      check -= max(1, (tiles - check) / 2);
    }
    hopper::wait_for_copies();
    finish(n);
  }
};

template <class Element, int kWidth>
__global__ void __launch_bounds__(kThreads, 2) forward_kernel(const __grid_constant__ ForwardArgs a) {
  Forward<Element, kWidth>(a).attend();
}

}  // namespace

void launch_stick_forward(const AttentionParams& p, const ForwardArgs& a) {
  const int64_t blocks = a.chunks * int64_t{a.problem.sequences} * a.problem.heads * tiles_of(a.problem.most_q);
  choose(p.type, a.v.columns, [&]<class Element, int kWidth>(Instance<Element, kWidth>) {
    launch(forward_kernel<Element, kWidth>, "stick-breaking mma_sync forward", p, a, blocks, shared_bytes(a, kWidth));
  });
}

}  // namespace attest::portable
