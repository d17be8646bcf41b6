// The engine with a defect, for audit_test.cc: multiply and add are fused.
#define ATTEST_LANES_NAMESPACE broken_contraction
#define ATTEST_BREAK_CONTRACTION
#include "oracles/certified/lane_kernels.h"

#include "oracles/audit/broken_lanes.h"

namespace attest {

const certified::Lanes& lanes_with_contraction() {
  static constexpr certified::Lanes lanes = certified::broken_contraction::make_lanes("broken: contraction");
  return lanes;
}

}  // namespace attest
