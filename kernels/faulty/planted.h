// The launch functions of the defects that compute-sanitizer must report; no Torch here.
#pragma once

namespace attest::faulty {

/// Null, or what CUDA says of the launch.
const char* launch_race(float* out, void* stream);
const char* launch_read_unwritten(const float* in, float* out, void* stream);

}  // namespace attest::faulty
