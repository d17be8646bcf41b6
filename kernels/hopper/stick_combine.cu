// stickbreaking.cuda.decode: a block combines what segments left of some columns of one row, nearest first, by the contract in
// stick_forward.cu: O = fma(P, o, O), P = P·stick. Each thread multiplies the sticks itself, in order: the chain is as long as that of
// the sums. One block reports a length that doesn't fit.
#include "kernels/hopper/combine_values.cuh"
#include "kernels/hopper/device_errors.h"
#include "kernels/hopper/stick_decode_kernels.h"

namespace attest::stick {
namespace {

constexpr int kThreads = fused::kCombineThreads, kRoom = fused::kCombineRoom;

struct Shared {
  __align__(16) float values[kRoom];
  float sticks[kThreads];
};

__device__ __forceinline__ void check_length(const CombineArgs& a, int batch) {
  if (a.seqlens_kv == nullptr || a.errors == nullptr) return;
  const int length = a.seqlens_kv[batch];
  if (length < 0 || length > a.problem.seqlen_kv) atomicOr_system(a.errors, kLengthOutside);
}

template <class Element>
__global__ void __launch_bounds__(kThreads) combine_kernel(const __grid_constant__ CombineArgs a) {
  __shared__ Shared shared;
  const Problem& problem = a.problem;
  const int chunks = (a.partials.pitch + a.columns - 1) / a.columns, row = blockIdx.x / chunks;
  const int first_column = blockIdx.x % chunks * a.columns, column = first_column + threadIdx.x;
  const int query = row % problem.seqlen_q, head = row / problem.seqlen_q % problem.heads, batch = row / problem.seqlen_q / problem.heads;
  const int length = length_of(problem, a.seqlens_kv, batch);
  if (query == 0 && head == 0 && column == 0) check_length(a, batch);
  hopper::wait_for_kernel_before();
  float before = 1.0F, x = 0.0F;  // P, O
#pragma unroll 1
  for (int end = segments_of(length), first; end > 0; end = first) {
    first = max(0, end - kRoom / a.columns);
    fused::copy_values(a.partials, a.columns, row, first_column, first, end, shared.values);
    if (first + static_cast<int>(threadIdx.x) < end) shared.sticks[threadIdx.x] = *a.partials.stick_at(row, first + threadIdx.x);
    hopper::wait_for_copies();
    __syncthreads();
    if (threadIdx.x < a.columns)
#pragma unroll 8
      for (int i = end - first - 1; i >= 0; --i) {
        x = fmaf(before, shared.values[i * a.columns + threadIdx.x], x);
        before *= shared.sticks[i];
      }
    __syncthreads();
  }
  if (threadIdx.x >= a.columns || column >= problem.head_dim_v) return;
  if (column == 0) a.rem[a.rem_strides.at(batch, head, query)] = before;
  static_cast<uint16_t*>(a.out.data)[a.out.strides.at(batch, head, query) + column] =
      static_cast<uint16_t>(hopper::pack<Element>((x + 0.0F) * (1.0F / kWeightScale<Element>), 0.0F));
}

}  // namespace

void launch_combine(const AttentionParams& p, CombineArgs args) {
  args.columns = fused::combine_columns(p.num_rows());
  const bool half = p.type == ElementType::kFloat16;
  fused::launch_combining(half ? combine_kernel<__half> : combine_kernel<__nv_bfloat16>, p, args, "stick-breaking combine");
}

}  // namespace attest::stick
