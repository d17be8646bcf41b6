// The record of the fused kernels, which their faulty twins share.
#pragma once

#include "harness/variant.h"
#include "kernels/hopper/fused.h"

namespace attest {

/// Launches forward and, where p asks for gradients, backward.
using Attend = void(const fused::AttentionParams& p, int32_t* dominant, void* workspace);

/// Promises every law.
KernelVariant fused_variant(const std::string& name, const std::string& summary, Attend* attend);

}  // namespace attest
