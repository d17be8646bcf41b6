// The engine compiled again with one defect each, for the test of the audit. See oracles/certified/lane_kernels.h.
#pragma once

#include "oracles/certified/work.h"

namespace attest {

const certified::Lanes& lanes_without_compensation();  // the sums of tier 1 forget the rounding error of each addition
const certified::Lanes& lanes_with_contraction();      // multiply and add fused
const certified::Lanes& lanes_with_half_a_bound();     // of what is flushed to 0

}  // namespace attest
