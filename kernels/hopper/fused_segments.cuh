// How the forward kernel combines segments of keys; fused_forward.cu has the contract.
#pragma once

#include "kernels/hopper/fused_soften.cuh"

namespace attest::fused {

/// Sums of all segments so far: X = Σ of x·2^(m − M), M the largest m.
struct Total {
  float m[2], l[2];
};
/// The factors that bring sums with reference `total` and those of a segment with reference m to the larger one, which total becomes.
__device__ __forceinline__ void meet(float& total, float m, float& keep, float& add) {
  const float largest = fmaxf(total, m), reference = largest == -INFINITY ? 0.0F : largest;
  keep = hopper::exp2_fast(total - reference);
  add = hopper::exp2_fast(m - reference);
  total = largest;
}
/// An entry of the accumulators: anything where keep is 0, as for the first segment.
__device__ __forceinline__ float combined(float total, float segment, float keep, float add) {
  return fmaf(keep != 0.0F ? total : 0.0F, keep, segment * add);
}

/// Takes a segment in: total := total·keep + segment·add.
__device__ __forceinline__ void combine(Total& total, const Running& run, float (&keep)[2], float (&add)[2]) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    meet(total.m[h], run.m[h], keep[h], add[h]);
    total.l[h] = fmaf(total.l[h], keep[h], quad_sum(run.l[h]) * add[h]);
  }
}
/// The same for the accumulators; `total` is the thread's column of shared memory, entries `stride` apart. o := the sums.
template <int kSize>
__device__ __forceinline__ void combine(float (&o)[kSize], const float4* total, int stride, const float (&keep)[2],
                                        const float (&add)[2]) {
#pragma unroll
  for (int i = 0; i < kSize / 4; ++i) {
    const float4 before = total[i * stride];
    o[4 * i] = combined(before.x, o[4 * i], keep[0], add[0]);
    o[4 * i + 1] = combined(before.y, o[4 * i + 1], keep[0], add[0]);
    o[4 * i + 2] = combined(before.z, o[4 * i + 2], keep[1], add[1]);
    o[4 * i + 3] = combined(before.w, o[4 * i + 3], keep[1], add[1]);
  }
}

}  // namespace attest::fused
