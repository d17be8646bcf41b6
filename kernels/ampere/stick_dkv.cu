// stickbreaking.cuda.mma_sync, dk and dv. A block of four warps owns 64 keys of a KV head and up to 128 columns of dk and of dv. Sticks
// run along a query's keys, so a warp first finds the weights and dz of 16 queries of a tile, as the kernel of dq does; then both go
// through shared memory, from where each warp reads those of its 16 keys transposed.
//
// Reduction contract: that of kernels/hopper/stick_backward_dkv.cu, by the same functions (stick_scan_backward.cuh). Tiles of queries whose
// forward did not come as far as the keys are left out: they add exact zeros.
#include "kernels/ampere/launch.cuh"
#include "kernels/ampere/slabs.cuh"
#include "kernels/ampere/stick_rows.cuh"
#include "kernels/ampere/stores.cuh"

namespace attest::portable {
namespace {

using stick::kScaled;
using stick::kWeightScale;

int shared_bytes(const BackwardArgs& a) { return (a.k.slabs() + a.v.slabs() + kStages + 2) * kSlabBytes; }

template <class Element, int kWidth>
struct Dkv {
  const BackwardArgs& a;
  const Work work;
  const Sequence s;
  const Chunk dk_chunk, dv_chunk;
  const int first_key, key_slabs, value_slabs;
  float dk[kWidth / 2] = {}, dv[kWidth / 2] = {}, z[32], dp[32];
  float scale = kScaled<Element> ? stick::kFirstScale : 1.0F;
  float* largest;  // in shared memory: of each warp

  __device__ __forceinline__ Dkv(const BackwardArgs& args, float* shared_largest)
      : a(args),
        work(work_of(args.problem.sequences, args.problem.heads / args.problem.group, args.chunks)),
        s(args.problem.sequence(work.sequence)),
        dk_chunk(work.chunk, args.k.columns),
        dv_chunk(work.chunk, args.v.columns),
        first_key(work.tile * kTile),
        key_slabs(args.k.slabs()),
        value_slabs(args.v.slabs()),
        largest(shared_largest) {}

  /// Weights, then dz: [64 queries][64 keys] each, as a slab.
  __device__ __forceinline__ uint32_t operands() const { return shared_slabs(); }
  __device__ __forceinline__ uint32_t keys() const { return operands() + 2 * kSlabBytes; }
  __device__ __forceinline__ uint32_t values() const { return keys() + key_slabs * kSlabBytes; }
  __device__ __forceinline__ uint32_t ring() const { return values() + value_slabs * kSlabBytes; }

  /// Row h of a thread: accumulators of block b are positions 8b + 2x, 8b + 2x + 1.
  template <int h>
  __device__ __forceinline__ void store_row(uint32_t slab, const uint32_t (&packed)[8]) const {
    const int row = fused::row_in_warpgroup() + 8 * h;
#pragma unroll
    for (int b = 0; b < 8; ++b)
      asm volatile("st.shared.b32 [%0], %1;" ::"r"(slab + in_slab(row, b) + 4 * fused::lane_in_quad()), "r"(packed[b]) : "memory");
  }
  /// With the scale's sign.
  template <int h>
  __device__ __forceinline__ void store_dz(float factor) const {
    uint32_t packed[8];
#pragma unroll
    for (int b = 0; b < 8; ++b)
      packed[b] = hopper::pack<Element>(dp[4 * b + 2 * h] * factor, dp[4 * b + 2 * h + 1] * factor) & a.problem.sign_mask ^
                  a.problem.sign_flip;
    store_row<h>(operands() + kSlabBytes, packed);
  }

  template <int h>
  __device__ __forceinline__ void break_scores(int head, int first_row) {
    const int lane = fused::lane_in_quad(), row = first_row + fused::row_in_warpgroup() + 8 * h;
    const bool exists = row < s.n_q;
    const int64_t at = tile_row(a, s, head, first_key / kTile, exists ? row : 0);
    float rest[16], far = exists ? a.far[at] : 0.0F;
    uint32_t packed[8];
    const float prefix = stick::break_row<h>(z, rest, a.problem.logit_scale, exists ? a.sticks[at] : 0.0F, lane);
    const float sum = stick::weigh_row<Element, h>(z, rest, dp, prefix, packed);
    store_row<h>(operands(), packed);
    stick::dlogits_row<h>(z, rest, dp, sum, far, lane);
    if constexpr (!kScaled<Element>) store_dz<h>(1.0F);
  }

  /// dz that have become too large for the scale so far make dk's smaller; the block's all at once.
  __device__ __forceinline__ void rescale() {
    const float mine = fmaxf(stick::largest_of_row<0>(dp), stick::largest_of_row<1>(dp));
    const uint32_t most = __reduce_max_sync(~0U, __float_as_uint(mine));
    if (lane() == 0) largest[threadIdx.x / 32] = __uint_as_float(most);
    __syncthreads();
    const float next =
        stick::next_scale(scale, fmaxf(fmaxf(largest[0], largest[1]), fmaxf(largest[2], largest[3]))), ratio = next / scale;
    scale = next;
    store_dz<0>(scale), store_dz<1>(scale);
    if (ratio == 1.0F) return;
#pragma unroll
    for (int i = 0; i < kWidth / 2; ++i) dk[i] *= ratio;
  }

  /// d += Aᵀ · B: A this warp's 16 columns (keys) of a slab of operands, B [64 queries, 64 columns].
  __device__ __forceinline__ void accumulate(float* d, uint32_t operand, uint32_t b) const {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      uint32_t x[4];  // of matrices (queries 0–7, keys 0–7), (0–7, 8–15), (8–15, 0–7), (8–15, 8–15), transposed
      hopper::load_transposed(x, operand + in_slab(16 * k + lane() % 8 + lane() / 16 * 8, warp_row() / 8 + lane() / 8 % 2));
      accumulate_rows<Element>(d, x, b, k);
    }
  }

  template <class Slabs>
  __device__ __forceinline__ void step(Slabs& slabs, int head, int first_row) {
    fused::clear(z), fused::clear(dp);
#pragma unroll 1
    for (int c = 0; c < key_slabs; ++c)
      multiply_slab<Element>(z, slabs.next(), keys() + c * kSlabBytes, a.problem.sign_mask, a.problem.sign_flip);
#pragma unroll 1
    for (int c = 0; c < value_slabs; ++c) multiply_slab<Element>(dp, slabs.next(), values() + c * kSlabBytes);
    hide_keys(a.problem, s, z, first_row, first_key);
    break_scores<0>(head, first_row);
    break_scores<1>(head, first_row);
    if constexpr (kScaled<Element>) rescale();
#pragma unroll
    for (int c = 0; c < kWidth / 64; ++c)  // next() meets all warps, so the operands are there
      if (c < dv_chunk.slabs()) accumulate(dv + 32 * c, operands(), slabs.next());
#pragma unroll
    for (int c = 0; c < kWidth / 64; ++c)
      if (c < dk_chunk.slabs()) accumulate(dk + 32 * c, operands() + kSlabBytes, slabs.next());
  }

  /// Row m of the accumulators is key 8·(m % 8) + m / 8.
  template <int h>
  __device__ __forceinline__ void store(const Rows& to, const Chunk& chunk, const float (&d)[kWidth / 2], float factor) const {
    if (chunk.columns <= 0) return;
    const int row = fused::row_in_warpgroup() + 8 * h, key = first_key + row % 8 * 8 + row / 8, lane = fused::lane_in_quad();
    const Rows x = columns_of(to, chunk);
    uint16_t* at = static_cast<uint16_t*>(x.data) + x.strides.at(s.batch, work.head, s.kv_begin + key);
    if (x.aligned && chunk.columns == kWidth)
      fused::store_row<Element, true, h>(at, key < s.n_kv, chunk.columns, d, factor, lane);
    else
      fused::store_row<Element, false, h>(at, key < s.n_kv, chunk.columns, d, factor, lane);
  }

  /// Number n of the (head, tile of queries) that may see the keys; first_row −1 where none does, or the forward stopped before.
  struct Queries {
    int head, first_row;
  };
  __device__ __forceinline__ Queries queries(int n, int first_tile, int tiles) const {
    const Queries q{work.head * a.problem.group + n / tiles, (first_tile + n % tiles) * kTile};
    const bool visible = first_key <= a.problem.last_visible(s, q.first_row + kTile - 1);
    return {q.head, visible && a.first_tile[a.problem.row_of_all(s, q.head, q.first_row)] <= first_key / kTile ? q.first_row : -1};
  }
  /// The first from n on that is needed; `end`: none.
  __device__ __forceinline__ int needed(int n, int end, int first_tile, int tiles) const {
    while (n < end && queries(n, first_tile, tiles).first_row < 0) ++n;
    return n;
  }

  __device__ __forceinline__ void own() {
    if (first_key >= s.n_kv) return;
    const Source resident_keys = keys_of(a.k, a.problem, s, work.head), resident_values = keys_of(a.v, a.problem, s, work.head);
#pragma unroll 1
    for (int c = 0; c < key_slabs; ++c) load_slab<8>(resident_keys, first_key, c, keys() + c * kSlabBytes);
#pragma unroll 1
    for (int c = 0; c < value_slabs; ++c) load_slab<8>(resident_values, first_key, c, values() + c * kSlabBytes);
    const int first_tile = a.problem.first_query_tile(s, first_key), tiles = max((s.n_q + kTile - 1) / kTile - first_tile, 0);
    const int end = a.problem.group * tiles;
    int loading = needed(0, end, first_tile, tiles), n = loading;
    Stream slabs(
        [&](int, int i, uint32_t to) {
          if (loading >= end) return;
          const Queries from = queries(loading, first_tile, tiles);
          const int of_dv = i - key_slabs - value_slabs, of_dk = of_dv - dv_chunk.slabs();
          const bool query = i < key_slabs || of_dk >= 0;
          const int slab = i < key_slabs ? i : of_dv < 0 ? i - key_slabs : of_dk < 0 ? dv_chunk.first_slab() + of_dv : dk_chunk.first_slab() + of_dk;
          load_slab<1>(queries_of(query ? a.q : a.dout, s, from.head), from.first_row, slab, to);
          if (i + 1 == key_slabs + value_slabs + dv_chunk.slabs() + dk_chunk.slabs())
            loading = needed(loading + 1, end, first_tile, tiles);
        },
        ring(), end, key_slabs + value_slabs + dv_chunk.slabs() + dk_chunk.slabs());
#pragma unroll 1
    for (; n < end; n = needed(n + 1, end, first_tile, tiles)) {
      const Queries q = queries(n, first_tile, tiles);
      step(slabs, q.head, q.first_row);
    }
    hopper::wait_for_copies();
    const float dv_factor = 1.0F / kWeightScale<Element>, dk_factor = stick::finite(a.dk_scale * (1.0F / scale));
    store<0>(a.dv, dv_chunk, dv, dv_factor);
    store<1>(a.dv, dv_chunk, dv, dv_factor);
    store<0>(a.dk, dk_chunk, dk, dk_factor);
    store<1>(a.dk, dk_chunk, dk, dk_factor);
  }
};

template <class Element, int kWidth>
__global__ void __launch_bounds__(kThreads, 2) dkv_kernel(const __grid_constant__ BackwardArgs a) {
  __shared__ float largest[kThreads / 32];
  Dkv<Element, kWidth>(a, largest).own();
}

}  // namespace

void launch_stick_dkv(const AttentionParams& p, const BackwardArgs& a) {
  const int64_t blocks = a.chunks * int64_t{a.problem.sequences} * (a.problem.heads / a.problem.group) * tiles_of(a.problem.most_kv);
  choose(p.type, std::max(a.k.columns, a.v.columns), [&]<class Element, int kWidth>(Instance<Element, kWidth>) {
    launch(dkv_kernel<Element, kWidth>, "stick-breaking mma_sync dk, dv", p, a, blocks, shared_bytes(a));
  });
}

}  // namespace attest::portable
