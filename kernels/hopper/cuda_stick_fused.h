// What the records of the stick-breaking kernels for Hopper, and their faulty twins, share.
#pragma once

#include "harness/variant.h"
#include "kernels/hopper/stick.h"

namespace attest {

/// Launches forward and, where p asks for gradients, backward. `saved`: what the one leaves for the other; may be null.
using AttendSticks = void(const stick::AttentionParams& p, void* saved, void* workspace);

/// Of stickbreaking.cuda.fused and .decode, whose bits are the same.
ToleranceContract stick_contract();

/// Promises every law.
KernelVariant stick_variant(const std::string& name, const std::string& summary, AttendSticks* attend);

}  // namespace attest
