// What a stick-breaking twin's file includes before the source that it is made from.
#pragma once

#include "kernels/hopper/faulty/stick_twins.h"
#include "kernels/hopper/stick_backward.h"

namespace attest::stick::faulty {

inline void attend(const AttentionParams& p, void* saved, void* workspace, const Kernels& kernels) {
  forward(p, saved, workspace, kernels);
  if (p.backward()) backward(p, saved, workspace, kernels);
}

}  // namespace attest::stick::faulty
