// Who a thread is within a warpgroup's accumulators, and what four lanes of a row do together.
#pragma once

#include "kernels/hopper/fused_defects.h"
#include "kernels/hopper/hopper.cuh"
#include "kernels/hopper/wgmma.cuh"

namespace attest::fused {

/// The thread's number, read afresh at each call: it costs an instruction, and no register in between.
__device__ __forceinline__ int thread_in_block() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}
/// Of the four lanes that share a row of accumulators, this one; and the first of the thread's rows among a warpgroup's 64.
__device__ __forceinline__ int lane_in_quad() { return thread_in_block() % 4; }
__device__ __forceinline__ int row_in_warpgroup() {
  const int thread = thread_in_block();
  return thread % 128 / 32 * 16 + thread % 32 / 4;
}

/// How many lanes of a warp arrive when it releases something. One is enough: __syncwarp() orders the reads of all lanes before it.
/// racecheck follows lanes, not warps, and calls the next copy a race with the reads of the other 31; with all of them it is silent.
#ifdef ATTEST_EVERY_LANE_ARRIVES
constexpr int kArrivalsOfWarp = 32;
#else
constexpr int kArrivalsOfWarp = 1;
#endif
__device__ __forceinline__ void release(hopper::Barrier barrier) {
  __syncwarp();
  if (threadIdx.x % 32 < kArrivalsOfWarp) barrier.arrive();
}
/// Makes a barrier that is passed when `warps` warps have released it. One that is made with a count of its own is passed too early where
/// every lane arrives.
__device__ __forceinline__ void init_for_releases(hopper::Barrier barrier, int warps) { barrier.init(warps * kArrivalsOfWarp); }

/// Sum over the four lanes that share a row: (0 + 1) + (2 + 3).
__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(~0U, x, 1);
  return x + __shfl_xor_sync(~0U, x, 2);
}
__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0U, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0U, x, 2));
}

}  // namespace attest::fused
