// The launch function of the out-of-bounds defect; no Torch here.
#pragma once

#include <cstdint>

namespace attest::faulty {

/// Null, or what CUDA says of the launch. The fault itself shows at the next synchronisation.
const char* launch_out_of_bounds(float* buffer, void* stream);

}  // namespace attest::faulty
