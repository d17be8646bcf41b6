// softmax.cuda.mma_sync, what the backward needs of each query before it sees a key (kernels/hopper/fused_backward.h): lse in log2
// units, the reference that every dP is taken relative to, dlse. One warp does 16 queries.
//
// Contract: that of kernels/hopper/fused_backward_rows.cu. With a dominant key: its dP, k16 products, d ascending, from zero; else δ =
// dout·out: lane x of 16 sums columns 8x + 128i …, ascending (fma), then lanes 1, 2, 4, 8 apart are added.
#include "kernels/ampere/launch.cuh"
#include "kernels/ampere/slabs.cuh"
#include "kernels/hopper/fused_dot.cuh"

namespace attest::portable {
namespace {

constexpr int kRowsOfWarp = 16, kWarps = kThreads / 32;

/// Elements column … column + 8·kPairs/4 − 1 of a row; those from `columns` on are 0, whatever lies there.
template <int kPairs>
__device__ __forceinline__ void load_pairs(const uint16_t* row, int64_t stride, int column, int columns, uint32_t (&to)[kPairs]) {
#pragma unroll
  for (int i = 0; i < kPairs; ++i) {
    to[i] = 0;
#pragma unroll
    for (int e = 0; e < 2; ++e)
      if (column + 2 * i + e < columns) to[i] |= static_cast<uint32_t>(row[(column + 2 * i + e) * stride]) << 16 * e;
  }
}

struct Found {
  float delta[kRowsOfWarp], dominant[kRowsOfWarp];
};

struct Rows16 {
  const ValuesArgs& a;
  const Sequence s;
  const int head, first;

  __device__ __forceinline__ const uint16_t* dout(int row) const { return queries_of(a.dout, s, head).first + row * a.dout.row; }
  __device__ __forceinline__ const uint16_t* out(int row) const {
    return static_cast<const uint16_t*>(a.out.data) + a.out.at(s.batch, head, s.q_begin + row);
  }
  __device__ __forceinline__ const uint16_t* value(int key) const {
    return keys_of(a.v, a.problem, s, head / a.problem.group).first + key * a.v.row;
  }
};

/// δ: 16 lanes a row, two rows at a time.
template <class Element>
__device__ __forceinline__ void find_delta(const Rows16& r, Found& found) {
  const int columns = r.a.dout.columns, half = lane() / 16;
  for (int i = 0; i < kRowsOfWarp / 2; ++i) {
    const int row = r.first + 2 * i + half;
    float sum = 0.0F;
    if (row < r.s.n_q)
      for (int column = lane() % 16 * 8; column < columns; column += 128) {
        uint32_t x[4], y[4];
        load_pairs(r.dout(row), r.a.dout.dim, column, columns, x);
        load_pairs(r.out(row), r.a.out.dim, column, columns, y);
        sum = fused::dot_eight<Element>(make_uint4(x[0], x[1], x[2], x[3]), make_uint4(y[0], y[1], y[2], y[3]), sum);
      }
#pragma unroll
    for (int apart = 1; apart < 16; apart *= 2) sum += __shfl_xor_sync(~0U, sum, apart);
    if (lane() % 16 == 0) found.delta[2 * i + half] = sum;
  }
}

/// dP of row i and the dominant key of row i: the diagonal of dout · Vᵀ with the dominant keys' values as V's rows.
template <class Element>
__device__ __forceinline__ void find_dominant(const Rows16& r, const int (&keys)[2], Found& found) {
  const int g = lane() / 4, x = lane() % 4, columns = r.a.dout.columns;
  float c[2][4] = {};
  for (int k = 0; k < (columns + 15) / 16; ++k) {
    uint32_t left[4] = {};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      uint32_t pair[1] = {};
      const int row = r.first + g + 8 * (i % 2);
      if (row < r.s.n_q) load_pairs(r.dout(row), r.a.dout.dim, 16 * k + 2 * x + 8 * (i / 2), columns, pair);
      left[i] = pair[0];
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      uint32_t low[1] = {}, high[1] = {};
      if (keys[h] >= 0) {
        load_pairs(r.value(keys[h]), r.a.v.dim, 16 * k + 2 * x, columns, low);
        load_pairs(r.value(keys[h]), r.a.v.dim, 16 * k + 2 * x + 8, columns, high);
      }
      hopper::warp_multiply_add<Element>(c[h], left, low[0], high[0]);
    }
  }
#pragma unroll
  for (int h = 0; h < 2; ++h)
#pragma unroll
    for (int e = 0; e < 2; ++e)
      if (2 * x + e == g) found.dominant[g + 8 * h] = c[h][2 * h + e];
}

template <class Element>
__global__ void __launch_bounds__(kThreads) values_kernel(const __grid_constant__ ValuesArgs a) {
  __shared__ Found all_found[kWarps];
  Found& found = all_found[threadIdx.x / 32];
  const Problem& p = a.problem;
  const Work work = work_of(p.sequences, p.heads, 1);
  const Sequence s = p.sequence(work.sequence);
  const Rows16 r{a, s, work.head, work.tile * kTile + warp_row()};
  const int row = r.first + lane();
  const bool mine = lane() < kRowsOfWarp && row < s.n_q;
  const int64_t at = p.row_of_all(s, work.head, row);
  const int key = mine ? a.dominant[at] : -1;
  find_delta<Element>(r, found);
  const int keys[2] = {__shfl_sync(~0U, key, lane() / 4), __shfl_sync(~0U, key, lane() / 4 + 8)};
  if (__any_sync(~0U, key >= 0)) find_dominant<Element>(r, keys, found);
  __syncwarp();
  if (!mine) return;
  const float lse = a.lse.data[a.lse.strides.at(s.batch, work.head, s.q_begin + row)];
  const float dlse = a.dlse.data != nullptr ? a.dlse.data[a.dlse.strides.at(s.batch, work.head, s.q_begin + row)] : 0.0F;
  const bool sees = lse != -INFINITY;
  a.values.lse2[at] = sees ? lse * fused::kLog2E : INFINITY;
  a.values.reference[at] = !sees ? 0.0F : key >= 0 ? found.dominant[lane()] : found.delta[lane()];
  a.values.shift[at] = sees ? dlse : 0.0F;
}

}  // namespace

void launch_softmax_values(const AttentionParams& p, const ValuesArgs& a) {
  const int64_t blocks = int64_t{a.problem.sequences} * a.problem.heads * tiles_of(a.problem.most_q);
  const bool half = p.type == ElementType::kFloat16;
  launch(half ? values_kernel<__half> : values_kernel<__nv_bfloat16>, "softmax mma_sync values", p, a, blocks, 0);
}

}  // namespace attest::portable
