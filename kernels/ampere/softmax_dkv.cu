// softmax.cuda.mma_sync, dk and dv. A block of four warps owns 64 keys of a KV head, 16 a warp, and up to 128 columns of dk and of
// dv. It works on the transposed problem, Sᵀ = K·Qᵀ and dPᵀ = V·dOᵀ, so that Pᵀ and dzᵀ are in registers as the next products need them.
//
// Reduction contract: that of kernels/hopper/fused_backward_dkv.cu. dv_j = Σ P_ij dout_i and dk_j = |scale| · Σ ± dz_ij q_i (± of the
// scale): over the group's query heads ascending, in a head over tiles of 64 queries cut at multiples of 64 of the query's index in its
// sequence, ascending, in a tile by k16 products, queries ascending; P_ij = 2^(c·s_ij − lse2_i), dz_ij = P_ij ((dP_ij − r_i) + e_i).
#include "kernels/ampere/launch.cuh"
#include "kernels/ampere/slabs.cuh"
#include "kernels/ampere/stores.cuh"

namespace attest::portable {
namespace {

constexpr int kValueBytes = 2 * 3 * kTile * 4;  // lse2, reference and shift of two tiles of queries
int shared_bytes(const BackwardArgs& a) { return (a.k.slabs() + a.v.slabs() + kStages) * kSlabBytes + kValueBytes; }

template <class Element, int kWidth>
struct Dkv {
  const BackwardArgs& a;
  const Work work;
  const Sequence s;
  const Chunk dk_chunk, dv_chunk;
  const int first_key, key_slabs, value_slabs, first_tile, tiles;  // tiles: of a head
  float dk[kWidth / 2] = {}, dv[kWidth / 2] = {};

  __device__ __forceinline__ explicit Dkv(const BackwardArgs& args)
      : a(args),
        work(work_of(args.problem.sequences, args.problem.heads / args.problem.group, args.chunks)),
        s(args.problem.sequence(work.sequence)),
        dk_chunk(work.chunk, args.k.columns),
        dv_chunk(work.chunk, args.v.columns),
        first_key(work.tile * kTile),
        key_slabs(args.k.slabs()),
        value_slabs(args.v.slabs()),
        first_tile(args.problem.first_query_tile(s, first_key)),
        tiles(max((s.n_q + kTile - 1) / kTile - first_tile, 0)) {}

  __device__ __forceinline__ uint32_t resident() const { return shared_slabs(); }
  __device__ __forceinline__ uint32_t ring() const { return resident() + (key_slabs + value_slabs) * kSlabBytes; }
  __device__ __forceinline__ float* values_of(int step) const {
    return reinterpret_cast<float*>(shared_memory + (key_slabs + value_slabs + kStages) * kSlabBytes) + step % 2 * 3 * kTile;
  }
  __device__ __forceinline__ int head_of(int step) const { return work.head * a.problem.group + step / tiles; }
  __device__ __forceinline__ int query_of(int step) const { return (first_tile + step % tiles) * kTile; }

  /// With a step's first slab: what its queries are. Those past the end get zeros, as do their rows of q and dout, so that they add 0.
  __device__ __forceinline__ void load_values(int step) const {
    const int query = query_of(step) + static_cast<int>(threadIdx.x);
    if (threadIdx.x >= kTile) return;
    const bool exists = query < s.n_q;
    const int64_t at = a.problem.row_of_all(s, head_of(step), exists ? query : 0);
    const float* from[3] = {a.values.lse2 + at, a.values.reference + at, a.values.shift + at};
#pragma unroll
    for (int i = 0; i < 3; ++i)
      asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(hopper::shared_address(values_of(step) + i * kTile + threadIdx.x)),
                   "l"(from[i]), "r"(exists ? 4 : 0)
                   : "memory");
  }

  /// Columns are queries: column x of the tile sees the thread's key iff its position is not before it.
  __device__ __forceinline__ void hide_queries(float (&z)[32], int query) const {
    const Problem& p = a.problem;
    if (!p.causal || first_key + warp_row() + 15 <= p.last_visible(s, query)) return;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int key = first_key + fused::row_in_warpgroup() + 8 * h;
      const int first = key - (s.n_kv - s.n_q - p.hidden) - query - 2 * fused::lane_in_quad();
#pragma unroll
      for (int i = 0; i < 16; ++i)
        if (i / 2 * 8 + i % 2 < first) z[i / 2 * 4 + 2 * h + i % 2] = -INFINITY;
    }
  }

  /// Pᵀ in z; its rounding in `weights`.
  __device__ __forceinline__ void find_weights(float (&z)[32], uint32_t (&weights)[16], const float* values) const {
#pragma unroll
    for (int b = 0; b < 8; ++b) {
      const float2 lse2 = *reinterpret_cast<const float2*>(values + 8 * b + 2 * fused::lane_in_quad());
#pragma unroll
      for (int i = 0; i < 4; ++i)
        z[4 * b + i] = hopper::exp2_fast(fmaf(z[4 * b + i], a.problem.logit_scale, -(i % 2 ? lse2.y : lse2.x)));
    }
    fused::round_to_operand<Element>(weights, z);
  }
  /// dzᵀ with the scale's sign, rounded.
  __device__ __forceinline__ void find_dlogits(float (&z)[32], const float (&dp)[32], uint32_t (&dz)[16], const float* values) const {
#pragma unroll
    for (int b = 0; b < 8; ++b) {
      const float* at = values + kTile + 8 * b + 2 * fused::lane_in_quad();
      const float2 reference = *reinterpret_cast<const float2*>(at), shift = *reinterpret_cast<const float2*>(at + kTile);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        z[4 * b + i] *= dp[4 * b + i] - (i % 2 ? reference.y : reference.x) + (i % 2 ? shift.y : shift.x);
    }
    fused::round_to_operand<Element>(dz, z);
#pragma unroll
    for (int i = 0; i < 16; ++i) dz[i] = dz[i] & a.problem.sign_mask ^ a.problem.sign_flip;
  }

  template <class Slabs>
  __device__ __forceinline__ void step(Slabs& slabs, int n) {
    float z[32] = {}, dp[32] = {};
    uint32_t weights[16], dz[16];
#pragma unroll 1
    for (int c = 0; c < key_slabs; ++c)
      multiply_slab<Element>(z, resident() + c * kSlabBytes, slabs.next(), a.problem.sign_mask, a.problem.sign_flip);
    hide_queries(z, query_of(n));
    find_weights(z, weights, values_of(n));
#pragma unroll 1
    for (int c = 0; c < value_slabs; ++c)
      multiply_slab<Element>(dp, resident() + (key_slabs + c) * kSlabBytes, slabs.next());
    find_dlogits(z, dp, dz, values_of(n));
#pragma unroll
    for (int c = 0; c < kWidth / 64; ++c)
      if (c < dv_chunk.slabs()) accumulate_slab<Element>(dv + 32 * c, weights, slabs.next());
#pragma unroll
    for (int c = 0; c < kWidth / 64; ++c)
      if (c < dk_chunk.slabs()) accumulate_slab<Element>(dk + 32 * c, dz, slabs.next());
  }

  /// Keys that are hidden from all get zeros, whatever their sums are.
  __device__ __forceinline__ void drop_hidden() {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int key = first_key + fused::row_in_warpgroup() + 8 * h;
      if (key < s.n_kv && a.problem.kept(s, key)) continue;
#pragma unroll
      for (int i = 0; i < kWidth / 4; ++i) dk[i / 2 * 4 + 2 * h + i % 2] = dv[i / 2 * 4 + 2 * h + i % 2] = 0.0F;
    }
  }
  __device__ __forceinline__ void store() {
    drop_hidden();
    const float once[2] = {1.0F, 1.0F}, scaled[2] = {a.dk_scale, a.dk_scale};
    const int first = s.kv_begin + first_key + fused::row_in_warpgroup(), end = s.kv_begin + s.n_kv, lane = fused::lane_in_quad();
    if (dv_chunk.columns > 0)
      fused::store_rows<Element>(columns_of(a.dv, dv_chunk), s.batch, work.head, first, end, dv_chunk.columns, dv, once, lane);
    if (dk_chunk.columns > 0)
      fused::store_rows<Element>(columns_of(a.dk, dk_chunk), s.batch, work.head, first, end, dk_chunk.columns, dk, scaled, lane);
  }

  __device__ __forceinline__ void load(int step, int i, uint32_t to) const {
    if (i == 0) load_values(step);
    const int of_dv = i - key_slabs - value_slabs, of_dk = of_dv - dv_chunk.slabs();
    const bool query = i < key_slabs || of_dk >= 0;
    const int slab = i < key_slabs ? i : of_dv < 0 ? i - key_slabs : of_dk < 0 ? dv_chunk.first_slab() + of_dv : dk_chunk.first_slab() + of_dk;
    load_slab<1>(queries_of(query ? a.q : a.dout, s, head_of(step)), query_of(step), slab, to);
  }

  __device__ __forceinline__ void own() {
    if (first_key >= s.n_kv) return;
    const Source keys = keys_of(a.k, a.problem, s, work.head), values = keys_of(a.v, a.problem, s, work.head);
#pragma unroll 1
    for (int c = 0; c < key_slabs; ++c) load_slab<1>(keys, first_key, c, resident() + c * kSlabBytes);
#pragma unroll 1
    for (int c = 0; c < value_slabs; ++c) load_slab<1>(values, first_key, c, resident() + (key_slabs + c) * kSlabBytes);
    const int steps = a.problem.group * tiles;
    Stream slabs([this](int step, int i, uint32_t to) { load(step, i, to); }, ring(), steps,
                 key_slabs + value_slabs + dv_chunk.slabs() + dk_chunk.slabs());
#pragma unroll 1
    for (int n = 0; n < steps; ++n) step(slabs, n);
    store();
  }
};

template <class Element, int kWidth>
__global__ void __launch_bounds__(kThreads, 2) dkv_kernel(const __grid_constant__ BackwardArgs a) {
  Dkv<Element, kWidth>(a).own();
}

}  // namespace

void launch_softmax_dkv(const AttentionParams& p, const BackwardArgs& a) {
  const int64_t blocks = a.chunks * int64_t{a.problem.sequences} * (a.problem.heads / a.problem.group) * tiles_of(a.problem.most_kv);
  choose(p.type, std::max(a.k.columns, a.v.columns), [&]<class Element, int kWidth>(Instance<Element, kWidth>) {
    launch(dkv_kernel<Element, kWidth>, "softmax mma_sync dk, dv", p, a, blocks, shared_bytes(a));
  });
}

}  // namespace attest::portable
