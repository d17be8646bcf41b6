// What the kernels that combine the segments of a row share, of both operators: a block has some columns of a row, copies what
// segments left of them to shared memory, and is launched beside the kernel before.
#pragma once

#include "kernels/device/launch.h"
#include "kernels/hopper/fused.h"
#include "kernels/hopper/hopper.cuh"

namespace attest::fused {

constexpr int kCombineThreads = 128;
constexpr int kCombineRoom = 32 * kCombineThreads;  // values at once: 32 columns of 128 segments, or 128 of 32

/// Segments [first, end) of a row, from the farther end on, `columns` of each.
template <class Partials>
__device__ __forceinline__ void copy_values(const Partials& partials, int columns, int row, int first_column, int first, int end,
                                            float* values) {
  const int pieces = columns / 4;  // of 16 bytes
#pragma unroll 1
  for (int i = threadIdx.x; i < (end - first) * pieces; i += kCombineThreads) {
    const int column = first_column + i % pieces * 4;
    if (column < partials.pitch)
      hopper::copy_16(hopper::shared_address(values + 4 * i), partials.at(row, first + i / pieces) + column, 16);
  }
}

/// Columns of a block: few where there are few rows, so that there are enough blocks.
inline int combine_columns(int64_t rows) {
  constexpr int64_t kFewRows = 512;
  return rows <= kFewRows ? 32 : 128;
}

/// Blocks for every row and args.columns of args.partials.pitch, which may wait beside those of the kernel before.
template <class Args>
void launch_combining(void (*kernel)(Args), const AttentionParams& p, const Args& args, const char* name) {
  const int64_t chunks = (args.partials.pitch + args.columns - 1) / args.columns;
  cudaLaunchAttribute beside_kernel_before{};
  beside_kernel_before.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  beside_kernel_before.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(grid_of(p.num_rows() * chunks));
  config.blockDim = dim3(kCombineThreads);
  config.stream = static_cast<cudaStream_t>(p.stream);
  config.attrs = &beside_kernel_before;
  config.numAttrs = 1;
  check_cuda(cudaLaunchKernelEx(&config, kernel, args), name);
}

}  // namespace attest::fused
