// softmax.cuda.fused, dq. A block owns 128 queries, 64 a warpgroup; tiles of 64 keys, cut at absolute multiples, from the
// nearest to the farthest.
//
// Reduction contract. With r the row's reference, e its guessed shift (fused_backward.h): P_j = 2^(c·s_j − lse2), d_j = dP_j − r;
// s and dP: k16 products, d ascending, from zero. Three sums over the keys, P and P (d + e) rounded to the element type first:
//   g = Σ P_j (d_j + e) k_j and k̄ = Σ P_j k_j: k16 products, in a tile j ascending, tiles near to far;
//   σ = Σ P_j d_j in fp32 (fma): per lane (keys ≡ 2x, 2x+1 mod 8) in the order of its registers, over the quad (0+1)+(2+3).
// dq = scale · fma(dlse − σ − e, k̄, g).
//
// Why k̄. dz_j = P_j (d_j + dlse − σ) asks for σ to nearly fp32, which is known only when every key has been seen: where dz_j
// cancels, an error of the size of dout·out's (out and its P were rounded to 16 bits) is many times what rounding dz explains.
// e is nearly the right shift already, so that the rounding of k̄ matters no more than that of g. It costs one product of four.
#include "kernels/hopper/fused_backward.h"
#include "kernels/hopper/fused_pipeline.cuh"

namespace attest::fused {
namespace {

template <int kHeadDim>
struct Shape {
  static constexpr int kRows = 128, kKeys = kDqKeyTile, kStages = 3, kThreads = 384;
  static constexpr int kResident = kRows * kHeadDim * 2, kTile = kKeys * kHeadDim * 2;  // bytes of Q or dO; of K or V
  static constexpr int kRowBytes = 3 * kRows * 4;
  static constexpr int kSharedBytes = 1024 + 2 * kResident + kStages * 2 * kTile + kRowBytes;
};

template <int kHeadDim>
struct Shared {
  using S = Shape<kHeadDim>;
  uint32_t q, dout, tiles, rows;
  Pipeline<S::kStages> pipeline;
  __device__ __forceinline__ Shared(const char* memory, const uint64_t* barriers, volatile int* piece)
      : q((hopper::shared_address(memory) + 1023) & ~1023U),
        dout(q + S::kResident),
        tiles(dout + S::kResident),
        rows(tiles + S::kStages * 2 * S::kTile),
        pipeline{hopper::shared_address(barriers), piece} {}
};

template <int kHeadDim>
__device__ __forceinline__ void produce_piece(const BackwardArgs& a, const Shared<kHeadDim>& sh, const Piece& piece,
                                              Position<Shape<kHeadDim>::kStages>& at) {
  using S = Shape<kHeadDim>;
  const int batch = piece.head / a.problem.heads, head = piece.head % a.problem.heads, row = piece.index * S::kRows;
  const hopper::Barrier ready = sh.pipeline.resident_full();
  ready.arrive_expecting(2 * S::kResident + S::kRowBytes);
  load_rows<kHeadDim, S::kRows>(sh.q, a.q, ready, row, head, batch);
  load_rows<kHeadDim, S::kRows>(sh.dout, a.dout, ready, row, head, batch);
  const int64_t first = static_cast<int64_t>(piece.head) * a.rows.padded_rows + row;
  hopper::load_bytes(sh.rows, a.rows.lse2 + first, S::kRows * 4, ready);
  hopper::load_bytes(sh.rows + S::kRows * 4, a.rows.reference + first, S::kRows * 4, ready);
  hopper::load_bytes(sh.rows + 2 * S::kRows * 4, a.rows.dq_shift + first, S::kRows * 4, ready);
  const int kv_head = head / a.problem.group;
  for (int n = visible_tiles(a.problem, row + S::kRows - 1, S::kKeys) - 1; n >= 0; --n, at.step()) {
    const hopper::Barrier full = sh.pipeline.full(at.stage);
    sh.pipeline.empty(at.stage).wait(at.phase ^ 1);
    full.arrive_expecting(2 * S::kTile);
    load_rows<kHeadDim, S::kKeys>(sh.tiles + at.stage * 2 * S::kTile, a.k, full, n * S::kKeys, kv_head, batch);
    load_rows<kHeadDim, S::kKeys>(sh.tiles + at.stage * 2 * S::kTile + S::kTile, a.v, full, n * S::kKeys, kv_head, batch);
  }
}

template <int kHeadDim>
__device__ __forceinline__ void produce(const BackwardArgs& a, const Shared<kHeadDim>& sh) {
  Position<Shape<kHeadDim>::kStages> at;
  uint32_t freed = 1;
  for (int number = blockIdx.x; number < a.work.count; number = take_next(a.work)) {
    sh.pipeline.resident_empty().wait(freed);
    freed ^= 1;
    *sh.pipeline.piece = number;
    produce_piece(a, sh, piece_of(a.work, number), at);
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
  const Turns turns;
  const int lane, row_in_block;
  const uint64_t q, dout, tiles, tiles_transposed;
  float g[kHeadDim / 2], mean_key[kHeadDim / 2], s[S::kKeys / 2], dp[S::kKeys / 2];
  uint32_t dz[S::kKeys / 4], p[S::kKeys / 4];
  float minus_lse2[2], reference[2], shift[2], sigma[2];
  Piece piece;
  Position<S::kStages> at;
  int before;  // the stage whose products with dz and p are still to come

  __device__ __forceinline__ Consumer(const BackwardArgs& args, const Shared<kHeadDim>& shared, int id)
      : a(args),
        sh(shared),
        turns{__shfl_sync(~0U, id / 128, 0)},
        lane(id % 4),
        row_in_block(id / 32 * 16 + id % 32 / 4),
        q(hopper::operand(shared.q + turns.warpgroup * 64 * 128)),
        dout(hopper::advance(q, S::kResident)),
        tiles(hopper::operand(shared.tiles)),
        tiles_transposed(hopper::operand(shared.tiles, S::kKeys * 128)) {}

  __device__ __forceinline__ void begin() {
    clear(g), clear(mean_key);
#pragma unroll
    for (int i = 0; i < S::kKeys / 4; ++i) dz[i] = p[i] = 0;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const uint32_t row = sh.rows + 4 * (row_in_block + 8 * h);
      minus_lse2[h] = -load_float(row);
      reference[h] = load_float(row + 4 * S::kRows);
      shift[h] = load_float(row + 8 * S::kRows);
      sigma[h] = 0.0F;
    }
    before = at.stage;  // dz and p are 0: the first step's products with K add nothing
  }

  __device__ __forceinline__ void hide_keys(int first_key) {
    const Problem& problem = a.problem;
    const int row = piece.index * S::kRows;
    if (first_key + S::kKeys - 1 > last_visible(problem, row + 64 * turns.warpgroup)) {
      const int last[2] = {last_visible(problem, row + row_in_block), last_visible(problem, row + row_in_block + 8)};
      hide(s, last, first_key, 2 * lane);
    }
    if (problem.keep)
      hide_padded(s, problem.keep + int64_t{piece.head / problem.heads} * problem.keep_words + first_key / 32, 2 * lane);
  }

  __device__ __forceinline__ void weights() {
#pragma unroll
    for (int i = 0; i < S::kKeys / 2; ++i) s[i] = hopper::exp2_fast(fmaf(s[i], a.problem.logit_scale, minus_lse2[i / 2 % 2]));
  }
  __device__ __forceinline__ void dlogits() {
    round_to_operand<Element>(p, s);
#pragma unroll
    for (int i = 0; i < S::kKeys / 2; ++i) {
      const int h = i / 2 % 2;
      const float d = dp[i] - reference[h];
      sigma[h] = fmaf(s[i], d, sigma[h]);
      s[i] *= d + shift[h];
    }
    round_to_operand<Element>(dz, s);
  }

  __device__ __forceinline__ void issue_sums() {
    const uint64_t keys = hopper::advance(tiles_transposed, before * 2 * S::kTile);
    accumulate<Element>(g, dz, keys);
    accumulate<Element>(mean_key, p, keys);
    hopper::commit();
  }

  __device__ __forceinline__ void step(int n, bool first) {
    sh.pipeline.full(at.stage).wait(at.phase);
    turns.take();
    hopper::pin(s), hopper::pin(g), hopper::pin(mean_key);
    hopper::fence();
    issue_sums();
    const uint64_t keys = hopper::advance(tiles, at.stage * 2 * S::kTile);
    multiply_rows<Element, kHeadDim, S::kRows, S::kKeys>(s, q, keys);
    hopper::commit();
    hopper::wait<1>();
    hopper::pin(g), hopper::pin(mean_key);
    if (!first) release(sh.pipeline.empty(before));
    hopper::pin(dp);
    hopper::fence();
    multiply_rows<Element, kHeadDim, S::kRows, S::kKeys>(dp, dout, hopper::advance(keys, S::kTile));
    hopper::commit();
    turns.pass();
    hopper::wait<1>();
    hopper::pin(s);
    hide_keys(n * S::kKeys);
    weights();
    hopper::wait<0>();
    hopper::pin(dp);
    if (n == 0) release(sh.pipeline.resident_empty());
    dlogits();
    before = at.stage;
    at.step();
  }

  /// A tile that no row of the warpgroup sees.
  __device__ __forceinline__ void skip() {
    sh.pipeline.full(at.stage).wait(at.phase);
    turns.take();
    turns.pass();
    release(sh.pipeline.empty(at.stage));
    at.step();
  }

  /// g := Σ dz k, and the shift that dk and dv will take.
  __device__ __forceinline__ void correct(float* shifts, const float (&dlse)[2]) {
    float more[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float exact = dlse[h] - quad_sum(sigma[h]);
      more[h] = exact - shift[h];
      if (lane == 0) shifts[8 * h] = exact;
    }
#pragma unroll
    for (int i = 0; i < kHeadDim / 2; ++i) g[i] = fmaf(more[i / 2 % 2], mean_key[i], g[i]);
  }

  __device__ __forceinline__ void own() {
    const int row = piece.index * S::kRows, tile_count = visible_tiles(a.problem, row + S::kRows - 1, S::kKeys);
    int n = tile_count - 1;
    for (; n > 0 && n * S::kKeys > last_visible(a.problem, row + 64 * turns.warpgroup + 63); --n) skip();
    begin();
    for (const int first = n; n >= 0; --n) step(n, n == first);
    float* shifts = a.rows.shift + static_cast<int64_t>(piece.head) * a.rows.padded_rows + row + row_in_block;
    const float dlse[2] = {shifts[0], shifts[8]};
    hopper::pin(g), hopper::pin(mean_key);
    hopper::fence();
    issue_sums();
    hopper::wait<0>();
    hopper::pin(g), hopper::pin(mean_key);
    release(sh.pipeline.empty(before));
    correct(shifts, dlse);
    const float factor[2] = {a.dq_scale, a.dq_scale};
    store_rows<Element>(a.dq, piece.head / a.problem.heads, piece.head % a.problem.heads, row + row_in_block, a.problem.seqlen_q,
                        a.problem.head_dim, g, factor, lane);
  }

  __device__ __forceinline__ void consume() {
    if (turns.warpgroup == 1) turns.pass();
    for (uint32_t phase = 0;; phase ^= 1) {
      sh.pipeline.resident_full().wait(phase);
      const int number = __shfl_sync(~0U, threadIdx.x % 32 == 0 ? *sh.pipeline.piece : 0, 0);
      if (number < 0) break;
      piece = piece_of(a.work, number);
      own();
    }
    if (turns.warpgroup == 0) turns.take();
  }
};

template <class Element, int kHeadDim>
__global__ void __launch_bounds__(384, 1) dq_kernel(const __grid_constant__ BackwardArgs a) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) char memory[];
  __shared__ __align__(8) uint64_t barriers[Pipeline<Shape<kHeadDim>::kStages>::kBarriers];
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
  return {reinterpret_cast<const void*>(dq_kernel<Element, kHeadDim>), "softmax fused dq", S::kThreads, S::kSharedBytes,
          S::kRows};
}

}  // namespace

KernelInfo dq_kernel_of(ElementType type, int padded_head_dim) {
  const bool half = type == ElementType::kFloat16;
  if (padded_head_dim == 64) return half ? info<__half, 64>() : info<__nv_bfloat16, 64>();
  return half ? info<__half, 128>() : info<__nv_bfloat16, 128>();
}

}  // namespace attest::fused
