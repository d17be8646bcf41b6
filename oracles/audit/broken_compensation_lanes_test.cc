// The engine with a defect, for audit_test.cc: the sums of tier 1 forget the rounding error of each addition.
#define ATTEST_LANES_NAMESPACE broken_compensation
#define ATTEST_BREAK_COMPENSATION
#include "oracles/certified/lane_kernels.h"

#include "oracles/audit/broken_lanes.h"

namespace attest {

const certified::Lanes& lanes_without_compensation() {
  static constexpr certified::Lanes lanes = certified::broken_compensation::make_lanes("broken: compensation");
  return lanes;
}

}  // namespace attest
