// What a twin's file includes before the source that it is made from.
#pragma once

#include "kernels/hopper/faulty/twins.h"
#include "kernels/hopper/fused_backward.h"

namespace attest::fused::faulty {

inline void attend(const AttentionParams& p, int32_t* dominant, void* workspace, const Kernels& kernels) {
  forward(p, dominant, workspace, kernels);
  if (p.backward()) backward(p, dominant, workspace, kernels);
}

}  // namespace attest::fused::faulty
