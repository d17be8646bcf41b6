// softmax.cuda.fused, forward split over keys: a block combines what was left of some columns of one row, nearest first, by the
// contract in fused_forward.cu. A thread works out the factors of a segment, then the sums of a column, one segment after the
// other. Little code, since it is fetched anew for each call; little shared memory, so that blocks wait beside those of the
// kernel before; everything in flight at once.
#include "kernels/device/launch.h"
#include "kernels/hopper/fused_decode.h"
#include "kernels/hopper/fused_segments.cuh"

namespace attest::fused {
namespace {

constexpr int kThreads = 128, kWarps = kThreads / 32;
constexpr int kRoom = 32 * kThreads;  // values at once: 32 columns of 128 segments, or 128 of 32

struct Shared {
  __align__(16) float values[kRoom];
  float4 factors[kThreads];  // keep, add, l · add
  float largest[kWarps];
};

/// Segments [first, end) of a row, from the farther end on.
__device__ __forceinline__ void copy_values(const CombineArgs& a, Shared& shared, int row, int first_column, int first, int end) {
  const int pieces = a.columns / 4;  // of 16 bytes
#pragma unroll 1
  for (int i = threadIdx.x; i < (end - first) * pieces; i += kThreads) {
    const int column = first_column + i % pieces * 4;
    if (column < a.partials.pitch)
      hopper::copy_16(hopper::shared_address(shared.values + 4 * i), a.partials.at(row, first + i / pieces) + column, 16);
  }
}

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
    copy_values(a, shared, row, first_column, first, end);
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
  constexpr int64_t kFewRows = 512;  // whose columns go to several blocks
  args.columns = p.num_rows() <= kFewRows ? 32 : 128;
  const int64_t chunks = (args.partials.pitch + args.columns - 1) / args.columns;
  cudaLaunchAttribute beside_kernel_before{};
  beside_kernel_before.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  beside_kernel_before.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(grid_of(p.num_rows() * chunks));
  config.blockDim = dim3(kThreads);
  config.stream = static_cast<cudaStream_t>(p.stream);
  config.attrs = &beside_kernel_before;
  config.numAttrs = 1;
  const bool half = p.type == ElementType::kFloat16;
  check_cuda(cudaLaunchKernelEx(&config, half ? combine_kernel<__half> : combine_kernel<__nv_bfloat16>, args),
             "softmax fused combine");
}

}  // namespace attest::fused
