// The lane kernels for x86-64-v3: AVX2 and FMA, 4 lanes.
#define ATTEST_LANES_NAMESPACE avx2
#include "oracles/certified/lane_kernels.h"

namespace attest::certified {

const Lanes& avx2_lanes() {
  static constexpr Lanes lanes = avx2::make_lanes("avx2");
  return lanes;
}

}  // namespace attest::certified
