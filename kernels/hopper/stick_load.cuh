// Keys and values from global to shared memory, in the order of interleaved_map.
#pragma once

#include "kernels/hopper/hopper.cuh"

namespace attest::stick {

/// `kRows` rows of every 64 columns, one block of kRows × 64 after the other, in boxes of 8·kRun rows.
template <int kHeadDim, int kRows, int kRun>
__device__ __forceinline__ void load_keys(uint32_t to, const CUtensorMap& map, hopper::Barrier full, int row, int head, int batch) {
#pragma unroll
  for (int half = 0; half < kHeadDim / 64; ++half)
#pragma unroll
    for (int box = 0; box < kRows / (8 * kRun); ++box)
      hopper::load_interleaved(to + (half * kRows + box * 8 * kRun) * 128, map, full, 64 * half, row / kRun + 8 * box, head, batch);
}

}  // namespace attest::stick
