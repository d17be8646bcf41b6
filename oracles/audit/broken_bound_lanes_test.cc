// The engine with a defect, for audit_test.cc: half the bound of what is flushed to 0.
#define ATTEST_LANES_NAMESPACE broken_bound
#define ATTEST_BREAK_BOUND
#include "oracles/certified/lane_kernels.h"

#include "oracles/audit/broken_lanes.h"

namespace attest {

const certified::Lanes& lanes_with_half_a_bound() {
  static constexpr certified::Lanes lanes = certified::broken_bound::make_lanes("broken: bound");
  return lanes;
}

}  // namespace attest
