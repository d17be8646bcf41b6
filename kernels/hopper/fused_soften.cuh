// The online softmax of the forward kernel, one tile's step; fused_forward.cu has the contract. A thread holds parts of two rows,
// 8 apart (index h).
#pragma once

#include "kernels/hopper/fused_store.cuh"

namespace attest::fused {

/// A row's maximum may lag behind by 8 (log2 units): probabilities stay under 2^8, and rescaling gets rare.
constexpr float kLag = 8.0F;

/// The running softmax of a segment for two rows: reference m (log2 units), this lane's part l of the sum of 2^(z − m).
struct Running {
  float m[2], l[2], rescale[2];
  __device__ __forceinline__ void clear() {
    m[0] = m[1] = -INFINITY;
    l[0] = l[1] = 0.0F;
  }
};

/// The key with more than half of a row's weight so far, or −1; none with a logit up to `logit` can have it in the end.
struct Dominant {
  float logit[2];
  int key[2];
  /// Raises the bar to half of what has been summed: log2_sum is of whole segments.
  template <int h>
  __device__ __forceinline__ void raise(float log2_sum) {
    if (logit[h] > log2_sum - 1.0F) return;
    logit[h] = log2_sum - 1.0F;
    key[h] = -1;
  }
};

/// Of a group of 32 keys, 16 entries of a thread, 8 of row h: the largest, not yet over the quad.
template <int h>
__device__ __forceinline__ float group_max(const float* s) {
  float largest = fmaxf(s[2 * h], s[2 * h + 1]);
#pragma unroll
  for (int b = 1; b < 4; ++b) largest = fmaxf(largest, fmaxf(s[4 * b + 2 * h], s[4 * b + 2 * h + 1]));
  return largest;
}
template <int h>
__device__ __forceinline__ float row_max(const float (&s)[64]) {
  return quad_max(fmaxf(fmaxf(group_max<h>(s), group_max<h>(s + 16)), fmaxf(group_max<h>(s + 32), group_max<h>(s + 48))));
}

/// s := 2^(c·s − m) for a group's entries of row h; returns their sum, in order.
template <int h>
__device__ __forceinline__ float group_exponentials(float* s, float c, float minus_m) {
  float sum;
#pragma unroll
  for (int b = 0; b < 4; ++b)
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      float& z = s[4 * b + 2 * h + e];
      z = hopper::exp2_fast(fmaf(z, c, minus_m));
      sum = b + e == 0 ? z : sum + z;
    }
  return sum;
}
/// The same for a tile: groups in order, (0 + 1) + (2 + 3).
template <int h>
__device__ __forceinline__ float exponentials(float (&s)[64], float c, float minus_m) {
  float group[4];
#pragma unroll
  for (int u = 0; u < 4; ++u) group[u] = group_exponentials<h>(s + 16 * u, c, minus_m);
  return (group[0] + group[1]) + (group[2] + group[3]);
}

/// The first column of row h whose entry equals `value`; every lane of the quad gets it.
template <int h>
__device__ __forceinline__ int find_column(const float (&p)[64], float value) {
  const int lane_column = 2 * lane_in_quad();
  int column = kKeyTile;
#pragma unroll
  for (int i = 31; i >= 0; --i)
    if (p[4 * (i / 2) + 2 * h + i % 2] == value) column = 8 * (i / 2) + i % 2 + lane_column;
  column = min(column, __shfl_xor_sync(~0U, column, 1));
  return min(column, __shfl_xor_sync(~0U, column, 2));
}

/// Takes the largest logit of a tile (log2 units) into the reference of row h; returns −m, or 0 before any visible key.
__device__ __forceinline__ float raise_reference(Running& run, int h, float largest) {
  if (kDefect == Defect::kRescaleOfTileBefore && largest == -INFINITY) return run.m[h] == -INFINITY ? 0.0F : -run.m[h];
  bool up = largest > run.m[h] + kLag;
  if constexpr (kDefect == Defect::kNeighboursReference) up = __any_sync(~0U, up) && largest > run.m[h];
  run.rescale[h] = up ? hopper::exp2_fast(run.m[h] - largest) : 1.0F;
  run.m[h] = up ? largest : run.m[h];
  return run.m[h] == -INFINITY && kDefect != Defect::kEmptyTileUnguarded ? 0.0F : -run.m[h];
}

/// One tile's step for row h: logits become weights. Returns whether the tile's largest may have more than half of the weight.
template <int h>
__device__ __forceinline__ bool soften(float (&s)[64], float c, Running& run, float bar, float& largest, float& weight) {
  const float raw = row_max<h>(s);
  largest = raw * c;
  const float minus_m = raise_reference(run, h, largest);
  run.l[h] = fmaf(run.l[h], run.rescale[h], exponentials<h>(s, c, minus_m));
  weight = hopper::exp2_fast(fmaf(raw, c, minus_m));
  return largest > bar && 2.0F * weight > run.l[h];
}

template <int h>
__device__ __forceinline__ void note(Dominant& d, const float (&p)[64], bool heavy, float largest, float weight, int first_key) {
  const int column = find_column<h>(p, weight);
  if (!heavy) return;
  d.logit[h] = largest;
  d.key[h] = first_key + column;
}

/// Both rows. A dominant key is sought where a row of the warp may have one: more than half of a lane's sum, then of the row's.
/// Which rows note theirs depends on the row alone, since a key with half of the weight may pass the last test by a rounding.
__device__ __forceinline__ void soften_tile(float (&s)[64], float c, Running& run, Dominant& dominant, int first_key) {
  float largest[2], weight[2];
  bool heavy0 = soften<0>(s, c, run, dominant.logit[0], largest[0], weight[0]);
  bool heavy1 = soften<1>(s, c, run, dominant.logit[1], largest[1], weight[1]);
  if (!__any_sync(~0U, heavy0 || heavy1)) return;
  const float sum0 = quad_sum(run.l[0]), sum1 = quad_sum(run.l[1]);
  heavy0 = heavy0 && 2.0F * weight[0] > sum0, heavy1 = heavy1 && 2.0F * weight[1] > sum1;
  if (!__any_sync(~0U, heavy0 || heavy1)) return;
  note<0>(dominant, s, heavy0, largest[0], weight[0], first_key);
  note<1>(dominant, s, heavy1, largest[1], weight[1], first_key);
}

}  // namespace attest::fused
