// What the records of the stick-breaking kernels for Hopper share.
#pragma once

#include "harness/contract.h"

namespace attest {

/// Of stickbreaking.cuda.fused and .decode, whose bits are the same.
ToleranceContract stick_contract();

}  // namespace attest
