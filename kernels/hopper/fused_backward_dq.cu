// softmax.cuda.fused, dq. A block owns 128 queries, 64 a warpgroup; tiles of 64 keys, cut at absolute multiples, from the
// nearest to the farthest, and that twice.
//
// Reduction contract. With r the row's reference (fused_backward.h): P_j = 2^(c·s_j − lse2), d_j = dP_j − r; s and dP: k16
// products, d ascending, from zero. The first time σ = Σ P_j d_j (fma) and ρ = Σ P_j, in fp32: per lane (keys ≡ 2x, 2x+1 mod 8)
// in the order of its registers, over the quad (0+1)+(2+3). The row's shift is e = dlse − σ/ρ. The second time
// dq = scale · Σ dz_j k_j, dz_j = P_j (d_j + e) rounded to the element type: k16 products, in a tile j ascending, tiles near to far.
//
// Why twice: where dz_j cancels, e is needed to nearly fp32 before dz_j is rounded; README.md tells what else was tried. Why ρ: at
// logits of 1e5 the fp32 lse is off by 1 %, and so is each P; e then would not fit the d_j that all keys share.
#include "kernels/hopper/fused_backward.h"
#include "kernels/hopper/fused_pipeline.cuh"

namespace attest::fused {
namespace {

template <int kHeadDim>
struct Shape {
  static constexpr int kRows = 128, kKeys = kDqKeyTile, kStages = 3;
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
struct Producer {
  using S = Shape<kHeadDim>;
  const BackwardArgs& a;
  const Shared<kHeadDim>& sh;
  Position<S::kStages> at{};

  __device__ __forceinline__ void load_queries(int head_of_all, int head, int batch, int row) const {
    const hopper::Barrier ready = sh.pipeline.resident_full();
    ready.arrive_expecting(2 * S::kResident + S::kRowBytes);
    load_rows<kHeadDim, S::kRows>(sh.q, a.q, ready, row, head, batch);
    load_rows<kHeadDim, S::kRows>(sh.dout, a.dout, ready, row, head, batch);
    const int64_t first = static_cast<int64_t>(head_of_all) * a.rows.padded_rows + row;
    hopper::load_bytes(sh.rows, a.rows.lse2 + first, S::kRows * 4, ready);
    hopper::load_bytes(sh.rows + S::kRows * 4, a.rows.reference + first, S::kRows * 4, ready);
    hopper::load_bytes(sh.rows + 2 * S::kRows * 4, a.rows.shift + first, S::kRows * 4, ready);
  }
  __device__ __forceinline__ void load_keys(int n, int kv_head, int batch) {
    const hopper::Barrier full = sh.pipeline.full(at.stage);
    const uint32_t to = sh.tiles + at.stage * 2 * S::kTile;
    sh.pipeline.empty(at.stage).wait(at.phase ^ 1);
    full.arrive_expecting(2 * S::kTile);
    load_rows<kHeadDim, S::kKeys>(to, a.k, full, n * S::kKeys, kv_head, batch);
    load_rows<kHeadDim, S::kKeys>(to + S::kTile, a.v, full, n * S::kKeys, kv_head, batch);
    at.step();
  }
  __device__ __forceinline__ void operator()(const Piece& piece) {
    const int batch = piece.head / a.problem.heads, head = piece.head % a.problem.heads, row = piece.index * S::kRows;
    load_queries(piece.head, head, batch, row);
    const int tiles = visible_tiles(a.problem, row + S::kRows - 1, S::kKeys);
    for (int pass = 0; pass < 2; ++pass)
      for (int n = tiles - 1; n >= 0; --n) load_keys(n, head / a.problem.group, batch);
  }
};

template <class Element, int kHeadDim>
struct Consumer {
  using S = Shape<kHeadDim>;
  const BackwardArgs& a;
  const Shared<kHeadDim>& sh;
  const Turns turns;
  const int lane, row_in_block;
  const uint64_t q, dout, tiles, tiles_transposed;
  float g[kHeadDim / 2], s[S::kKeys / 2], dp[S::kKeys / 2];
  uint32_t dz[S::kKeys / 4];
  float minus_lse2[2], reference[2], shift[2], sigma[2], rho[2];
  Piece piece;
  Position<S::kStages> at;
  int before;  // the stage whose product with dz is still to come

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

  __device__ __forceinline__ uint64_t stage(uint64_t tile, int number) const {
    return hopper::advance(tile, number * 2 * S::kTile);
  }
  __device__ __forceinline__ void issue_logits() {
    hopper::pin(s);
    hopper::fence();
    multiply_rows<Element, kHeadDim, S::kRows, S::kKeys>(s, q, stage(tiles, at.stage));
    hopper::commit();
  }
  __device__ __forceinline__ void issue_dp() {
    hopper::pin(dp);
    hopper::fence();
    multiply_rows<Element, kHeadDim, S::kRows, S::kKeys>(dp, dout, hopper::advance(stage(tiles, at.stage), S::kTile));
    hopper::commit();
  }
  __device__ __forceinline__ void issue_gradient() {
    hopper::pin(g);
    hopper::fence();
    accumulate<Element>(g, dz, stage(tiles_transposed, before));
    hopper::commit();
  }

  __device__ __forceinline__ void hide_keys(int first_key) {
    const Problem& problem = a.problem;
    const int row = piece.index * S::kRows;
    const bool checks = problem.causal || kDefect != Defect::kTailWeights;
    if (checks && first_key + S::kKeys - 1 > last_visible(problem, row + 64 * turns.warpgroup)) {
      const int last[2] = {last_visible(problem, row + row_in_block), last_visible(problem, row + row_in_block + 8)};
      hide(s, last, first_key, 2 * lane);
    }
    if (problem.keep)
      hide_padded(s, problem.keep + int64_t{piece.head / problem.heads} * problem.keep_words + first_key / 32, 2 * lane);
  }
  /// s := P of tile n.
  __device__ __forceinline__ void weights(int n) {
    hide_keys(n * S::kKeys);
#pragma unroll
    for (int i = 0; i < S::kKeys / 2; ++i) s[i] = hopper::exp2_fast(fmaf(s[i], a.problem.logit_scale, minus_lse2[i / 2 % 2]));
  }

  __device__ __forceinline__ void begin() {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const uint32_t row = sh.rows + 4 * (row_in_block + 8 * h);
      minus_lse2[h] = -load_float(row);
      reference[h] = load_float(row + 4 * S::kRows);
      shift[h] = load_float(row + 8 * S::kRows);
      sigma[h] = rho[h] = 0.0F;
    }
  }
  __device__ __forceinline__ void sum_step(int n) {
    sh.pipeline.full(at.stage).wait(at.phase);
    turns.take();
    issue_logits();
    issue_dp();
    turns.pass();
    hopper::wait<1>();
    hopper::pin(s);
    weights(n);
    hopper::wait<0>();
    hopper::pin(dp);
    release(sh.pipeline.empty(at.stage));
    at.step();
#pragma unroll
    for (int i = 0; i < S::kKeys / 2; ++i) {
      const int h = i / 2 % 2;
      sigma[h] = fmaf(s[i], dp[i] - reference[h], sigma[h]);
      rho[h] += s[i];
    }
  }
  /// The row's shift, for dk and dv too. A row without a visible key has ρ = 0.
  __device__ __forceinline__ void end_sums() {
    float* shifts = a.rows.shift + static_cast<int64_t>(piece.head) * a.rows.padded_rows + piece.index * S::kRows + row_in_block;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float weight = kDefect == Defect::kSumNotNormalised ? 1.0F : quad_sum(rho[h]), sum = quad_sum(sigma[h]);
      shift[h] -= weight > 0.0F ? sum / weight : 0.0F;
      if (lane == 0) shifts[8 * h] = shift[h];
    }
  }

  __device__ __forceinline__ void begin_gradient() {
    clear(g);
#pragma unroll
    for (int i = 0; i < S::kKeys / 4; ++i) dz[i] = 0;
    before = at.stage;  // dz is 0: the first step's product with K adds nothing
  }
  __device__ __forceinline__ void step(int n, bool first) {
    sh.pipeline.full(at.stage).wait(at.phase);
    turns.take();
    issue_gradient();
    issue_logits();
    hopper::wait<1>();
    hopper::pin(g);
    if (!first) release(sh.pipeline.empty(before));
    issue_dp();
    turns.pass();
    hopper::wait<1>();
    hopper::pin(s);
    weights(n);
    hopper::wait<0>();
    hopper::pin(dp);
    if (n == 0) release(sh.pipeline.resident_empty());
#pragma unroll
    for (int i = 0; i < S::kKeys / 2; ++i) s[i] *= dp[i] - reference[i / 2 % 2] + shift[i / 2 % 2];
    round_to_operand<Element>(dz, s);
    before = at.stage;
    at.step();
  }
  __device__ __forceinline__ void end_gradient() {
    issue_gradient();
    hopper::wait<0>();
    hopper::pin(g);
    release(sh.pipeline.empty(before));
    const float factor[2] = {a.dq_scale, a.dq_scale};
    store_rows<Element>(a.dq, piece.head / a.problem.heads, piece.head % a.problem.heads, piece.index * S::kRows + row_in_block,
                        a.problem.seqlen_q, a.problem.head_dim, g, factor, lane);
  }

  /// Tiles from the nearest of the block on that no row of the warpgroup sees; returns the nearest that one does.
  __device__ __forceinline__ int skip_hidden() {
    const int row = piece.index * S::kRows, last = last_visible(a.problem, row + 64 * turns.warpgroup + 63);
    int n = visible_tiles(a.problem, row + S::kRows - 1, S::kKeys) - 1;
    for (; n > 0 && n * S::kKeys > last; --n) {
      sh.pipeline.full(at.stage).wait(at.phase);
      turns.take();
      turns.pass();
      release(sh.pipeline.empty(at.stage));
      at.step();
    }
    return n;
  }

  __device__ __forceinline__ void operator()(const Piece& taken) {
    piece = taken;
    begin();
    for (int n = skip_hidden(); n >= 0; --n) sum_step(n);
    end_sums();
    const int nearest = skip_hidden();
    begin_gradient();
    for (int n = nearest; n >= 0; --n) step(n, n == nearest);
    end_gradient();
  }
};

template <class Element, int kHeadDim>
__global__ void __launch_bounds__(kBackwardThreads, 1) dq_kernel(const __grid_constant__ BackwardArgs a) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  run_block<Shared<kHeadDim>, Producer<kHeadDim>, Consumer<Element, kHeadDim>>(a);
#endif
}

template <class Element, int kHeadDim>
KernelInfo info(Instance<Element, kHeadDim>) {
  using S = Shape<kHeadDim>;
  return {reinterpret_cast<const void*>(dq_kernel<Element, kHeadDim>), "softmax fused dq", kBackwardThreads,
          S::kSharedBytes, S::kRows};
}

}  // namespace

KernelInfo dq_kernel_of(ElementType type, int padded_head_dim) {
  return choose(type, padded_head_dim, [](auto instance) { return info(instance); });
}

}  // namespace attest::fused
