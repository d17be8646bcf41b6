// The lane kernels with 8 lanes, for machines that have 4: the compiler makes each operation of two or of eight.
#define ATTEST_LANES 8
#define ATTEST_LANES_NAMESPACE eight
#include "oracles/certified/lane_kernels.h"

namespace attest::certified {

const Lanes& eight_lanes() {
  static constexpr Lanes lanes = eight::make_lanes("eight");
  return lanes;
}

}  // namespace attest::certified
