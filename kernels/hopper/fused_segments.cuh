// How the forward kernel combines segments of keys; fused_forward.cu has the contract.
#pragma once

#include "kernels/hopper/fused_soften.cuh"

namespace attest::fused {

/// Sums of all segments so far: X = Σ of x·2^(m − M), M the largest m.
struct Total {
  float m[2], l[2];
};
/// Takes a segment in: total := total·keep + segment·add.
__device__ __forceinline__ void combine(Total& total, const Running& run, float (&keep)[2], float (&add)[2]) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const float m = fmaxf(total.m[h], run.m[h]), reference = m == -INFINITY ? 0.0F : m;
    keep[h] = hopper::exp2_fast(total.m[h] - reference);
    add[h] = hopper::exp2_fast(run.m[h] - reference);
    total.m[h] = m;
    total.l[h] = fmaf(total.l[h], keep[h], quad_sum(run.l[h]) * add[h]);
  }
}
/// The same for the accumulators; `total` is the thread's column of shared memory, entries `stride` apart: anything where
/// keep is 0, as for the first segment. o := the sums.
template <int kSize>
__device__ __forceinline__ void combine(float (&o)[kSize], const float4* total, int stride, const float (&keep)[2],
                                        const float (&add)[2]) {
#pragma unroll
  for (int i = 0; i < kSize / 4; ++i) {
    const float4 before = total[i * stride];
    o[4 * i] = fmaf(keep[0] != 0.0F ? before.x : 0.0F, keep[0], o[4 * i] * add[0]);
    o[4 * i + 1] = fmaf(keep[0] != 0.0F ? before.y : 0.0F, keep[0], o[4 * i + 1] * add[0]);
    o[4 * i + 2] = fmaf(keep[1] != 0.0F ? before.z : 0.0F, keep[1], o[4 * i + 2] * add[1]);
    o[4 * i + 3] = fmaf(keep[1] != 0.0F ? before.w : 0.0F, keep[1], o[4 * i + 3] * add[1]);
  }
}

}  // namespace attest::fused
