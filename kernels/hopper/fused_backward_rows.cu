// softmax.cuda.fused, what the backward needs of each query before it sees a key; see fused_backward.h. One warp does 16 rows.
//
// The reference of a row with a dominant key (more than half of the weight) is that key's dP, in the bits that the other
// kernels find for it: k16 products, d ascending, from zero, which mma.sync and wgmma sum alike. So d of that key is exactly 0,
// and a gradient at saturation keeps its digits. Without a dominant key no single dP matters, and δ = dout·out, nearly the mean
// of dP, keeps every d as small as it can be: columns 8x … 8x + 7 in lane x of 16, ascending (fma), then lanes 1, 2, 4, 8 apart.
#include "kernels/device/launch.h"
#include "kernels/hopper/fused_backward.h"
#include "kernels/hopper/fused_dot.cuh"

namespace attest::fused {
namespace {

constexpr int kThreads = 256, kRowsOfWarp = 16;

/// Columns column, column + 1 of a row; those from `head_dim` on are 0, whatever lies there.
__device__ __forceinline__ uint32_t load_two(const uint16_t* row, int column, int head_dim) {
  const uint32_t low = column < head_dim ? row[column] : 0, high = column + 1 < head_dim ? row[column + 1] : 0;
  return low | high << 16;
}
__device__ __forceinline__ uint4 load_eight(const uint16_t* row, int column, int head_dim) {
  if (column + 8 <= head_dim && reinterpret_cast<uintptr_t>(row + column) % 16 == 0)
    return *reinterpret_cast<const uint4*>(row + column);
  return make_uint4(load_two(row, column, head_dim), load_two(row, column + 2, head_dim), load_two(row, column + 4, head_dim),
                    load_two(row, column + 6, head_dim));
}

template <class Element>
__device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  if constexpr (std::is_same_v<Element, __half>)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// 16 consecutive rows of one head; `first` is their first, of which those below seqlen_q exist.
struct Block {
  const RowsArgs& a;
  int batch, head, first, lane;
  int64_t at;  // of the first row, in RowValues

  __device__ __forceinline__ bool exists(int row) const { return row < a.problem.seqlen_q; }
  __device__ __forceinline__ const uint16_t* bits_of(const View<const void>& x, int row, int h) const {
    return static_cast<const uint16_t*>(x.data) + x.at(batch, h, row);
  }
};

/// What a warp finds of its 16 rows: δ, and dP of the dominant key.
struct Found {
  float delta[kRowsOfWarp], dominant[kRowsOfWarp];
};

/// δ: 16 lanes a row, two rows at a time, every load issued before the first is used.
template <class Element>
__device__ __forceinline__ void find_delta(const Block& b, Found& found) {
  const RowsArgs& a = b.a;
  const int column = b.lane % 16 * 8, half = b.lane / 16, head_dim = a.problem.head_dim;
  uint4 dout[kRowsOfWarp / 2], out[kRowsOfWarp / 2];
#pragma unroll
  for (int i = 0; i < kRowsOfWarp / 2; ++i) {
    const int row = b.first + 2 * i + half;
    dout[i] = out[i] = make_uint4(0, 0, 0, 0);
    if (!b.exists(row) || column >= head_dim) continue;
    dout[i] = load_eight(b.bits_of(a.dout, row, b.head), column, head_dim);
    out[i] = load_eight(static_cast<const uint16_t*>(a.out.data) + a.out.at(b.batch, b.head, row), column, head_dim);
  }
#pragma unroll
  for (int i = 0; i < kRowsOfWarp / 2; ++i) {
    float sum = dot_eight<Element>(dout[i], out[i], 0.0F);
#pragma unroll
    for (int apart = 1; apart < 16; apart *= 2) sum += __shfl_xor_sync(~0U, sum, apart);
    if (column == 0) found.delta[2 * i + half] = sum;
  }
}

/// dP of row i and the dominant key of row i: the diagonal of dout · Vᵀ with the dominant keys' values as V's rows.
template <class Element>
__device__ __forceinline__ void find_dominant(const Block& b, const int (&keys)[2], Found& found) {
  const RowsArgs& a = b.a;
  const int g = b.lane / 4, x = b.lane % 4, head_dim = a.problem.head_dim, kv_head = b.head / a.problem.group;
  const int rows[2] = {b.first + g, b.first + g + 8};
  float c[2][4] = {};
  for (int k = 0; k < (head_dim + 15) / 16; ++k) {
    uint32_t m[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      m[i] = b.exists(rows[i % 2]) ? load_two(b.bits_of(a.dout, rows[i % 2], b.head), 16 * k + 2 * x + 8 * (i / 2), head_dim) : 0;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      uint32_t v[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        v[i] = keys[h] >= 0 ? load_two(b.bits_of(a.v, keys[h], kv_head), 16 * k + 2 * x + 8 * i, head_dim) : 0;
      multiply<Element>(c[h], m, v);
    }
  }
#pragma unroll
  for (int h = 0; h < 2; ++h)
#pragma unroll
    for (int e = 0; e < 2; ++e)
      if (2 * x + e == g) found.dominant[g + 8 * h] = c[h][2 * h + e];
}

/// Lane `row` of 16 writes what its row's values are. lse −∞: the row sees nothing, or doesn't exist.
__device__ __forceinline__ void write_values(const Block& b, const Found& found, float lse, float dlse, bool has_dominant) {
  const RowValues& to = b.a.rows;
  const int64_t at = b.at + b.lane;
  const bool sees = lse != -INFINITY;
  to.lse2[at] = sees ? lse * kLog2E : INFINITY;
  to.reference[at] = !sees ? 0.0F : has_dominant ? found.dominant[b.lane] : found.delta[b.lane];
  to.shift[at] = sees ? dlse : 0.0F;
}

template <class Element>
__global__ void __launch_bounds__(kThreads) rows_kernel(const __grid_constant__ RowsArgs a) {
  __shared__ Found all_found[kThreads / 32];
  Found& found = all_found[threadIdx.x / 32];
  const int warp = (blockIdx.x * kThreads + threadIdx.x) / 32, blocks = a.rows.padded_rows / kRowsOfWarp;
  const int of_all = warp / blocks, batch = of_all / a.problem.heads, head = of_all % a.problem.heads, lane = threadIdx.x % 32;
  if (batch >= a.problem.batch) return;
  const int first = warp % blocks * kRowsOfWarp, row = first + lane;
  const Block b{a, batch, head, first, lane, static_cast<int64_t>(of_all) * a.rows.padded_rows + first};
  const bool mine = lane < kRowsOfWarp && b.exists(row);
  const int key = mine ? a.dominant[static_cast<int64_t>(of_all) * a.problem.seqlen_q + row] : -1;
  const float lse = mine ? a.lse.data[a.lse.at(batch, head, row)] : -INFINITY;
  const float dlse = mine && a.dlse.data != nullptr ? a.dlse.data[a.dlse.at(batch, head, row)] : 0.0F;
  find_delta<Element>(b, found);
  const int keys[2] = {__shfl_sync(~0U, key, lane / 4), __shfl_sync(~0U, key, lane / 4 + 8)};
  if (__any_sync(~0U, key >= 0)) find_dominant<Element>(b, keys, found);
  __syncwarp();
  if (lane < kRowsOfWarp) write_values(b, found, lse, dlse, key >= 0 && kDefect != Defect::kDominantIgnored);
}

}  // namespace

void launch_rows(const AttentionParams& p, const RowsArgs& args) {
  const int64_t warps = int64_t{args.problem.batch} * args.problem.heads * (args.rows.padded_rows / kRowsOfWarp);
  const unsigned blocks = grid_of((warps * 32 + kThreads - 1) / kThreads);
  const auto stream = static_cast<cudaStream_t>(p.stream);
  if (p.type == ElementType::kFloat16)
    rows_kernel<__half><<<blocks, kThreads, 0, stream>>>(args);
  else
    rows_kernel<__nv_bfloat16><<<blocks, kThreads, 0, stream>>>(args);
  check_launch("softmax fused rows");
}

}  // namespace attest::fused
