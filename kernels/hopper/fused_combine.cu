// softmax.cuda.fused, forward split over keys: a block combines what was left of some columns of one row, nearest first, by the
// contract in fused_forward.cu. A thread works out the factors of a segment, then the sums of a column, one segment after the
// other. Little code, since it is fetched anew for each call; little shared memory, so that blocks wait beside those of the
// kernel before; everything in flight at once.
#include "kernels/hopper/combine_values.cuh"
#include "kernels/hopper/fused_decode.h"
#include "kernels/hopper/fused_segments.cuh"

namespace attest::fused {
namespace {

constexpr int kThreads = kCombineThreads, kWarps = kThreads / 32, kRoom = kCombineRoom;

struct Shared {
  __align__(16) float values[kRoom];
  float4 factors[kThreads];  // keep, add, l · add
  float largest[kWarps];
};

/// The factors of segments [first, end), the nearest first; m: the reference before them, then after them.
__device__ __forceinline__ void find_factors(const CombineArgs& a, Shared& shared, int row, int first, int end, float& m) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, segment = end - 1 - static_cast<int>(threadIdx.x);
  const float2 sums = segment >= first ? *a.partials.sums_at(row, segment) : make_float2(-INFINITY, 0.0F);
  float largest = sums.x;  // of the lanes up to this one
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const float other = __shfl_up_sync(~0U, largest, distance);
    if (lane >= distance) largest = fmaxf(largest, other);
  }
  if (lane == 31) shared.largest[warp] = largest;
  float before = __shfl_up_sync(~0U, largest, 1);
  if (lane == 0) before = -INFINITY;
  __syncthreads();
#pragma unroll
  for (int w = 0; w < kWarps; ++w) {
    if (w == warp) before = fmaxf(before, m);
    m = fmaxf(m, shared.largest[w]);
  }
  float keep, add;
  meet(before, sums.x, keep, add);
  shared.factors[threadIdx.x] = make_float4(keep, add, sums.y * add, 0.0F);
}

template <class Element>
__global__ void __launch_bounds__(kThreads) combine_kernel(const __grid_constant__ CombineArgs a) {
  __shared__ Shared shared;
  const Problem& problem = a.problem;
  const int chunks = (a.partials.pitch + a.columns - 1) / a.columns, row = blockIdx.x / chunks;
  const int first_column = blockIdx.x % chunks * a.columns, column = first_column + threadIdx.x;
  const int query = row % problem.seqlen_q, head = row / problem.seqlen_q % problem.heads, batch = row / problem.seqlen_q / problem.heads;
  const int last_of_block = query / a.block_rows * a.block_rows + a.block_rows - 1;
  const int nearest_range = (visible_tiles(problem, last_of_block, kKeyTile) - 1) / a.range_tiles;
  hopper::wait_for_kernel_before();
  float m = -INFINITY, l = 0.0F, x = 0.0F;
#pragma unroll 1
  for (int end = nearest_range * (a.range_tiles / kSegmentTiles) + 1, first; end > 0; end = first) {
    first = max(0, end - kRoom / a.columns);
    copy_values(a.partials, a.columns, row, first_column, first, end, shared.values);
    find_factors(a, shared, row, first, end, m);
    hopper::wait_for_copies();
    __syncthreads();
    if (threadIdx.x < a.columns)
#pragma unroll 8
      for (int i = 0; i < end - first; ++i) {
        const float4 factors = shared.factors[i];
        x = combined(x, shared.values[(end - first - 1 - i) * a.columns + threadIdx.x], factors.x, factors.y);
        l = fmaf(l, factors.x, factors.z);
      }
    __syncthreads();
  }
  const bool sees = l > 0.0F;
  if (threadIdx.x >= a.columns || column >= problem.head_dim) return;
  if (column == 0) a.lse[a.lse_strides.at(batch, head, query)] = sees ? (m + hopper::log2_fast(l)) * kLn2 : -INFINITY;
  static_cast<uint16_t*>(a.out.data)[a.out.strides.at(batch, head, query) + column] =
      static_cast<uint16_t>(hopper::pack<Element>(x * (sees ? 1.0F / l : 0.0F), 0.0F));
}

}  // namespace

void launch_combine(const AttentionParams& p, CombineArgs args) {
  args.columns = combine_columns(p.num_rows());
  const bool half = p.type == ElementType::kFloat16;
  launch_combining(half ? combine_kernel<__half> : combine_kernel<__nv_bfloat16>, p, args, "softmax fused combine");
}

}  // namespace attest::fused
