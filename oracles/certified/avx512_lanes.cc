// The lane kernels for x86-64-v4: AVX-512, 8 lanes.
#define ATTEST_LANES_NAMESPACE avx512
#include "oracles/certified/lane_kernels.h"

namespace attest::certified {

const Lanes& avx512_lanes() {
  static constexpr Lanes lanes = avx512::make_lanes("avx512");
  return lanes;
}

}  // namespace attest::certified
