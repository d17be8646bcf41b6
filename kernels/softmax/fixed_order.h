// The launches of softmax.cuda.fixed_order. Workspace: `weights`, which `logits` must be too, and `dlogits` for gradients.
#pragma once

#include "kernels/device/attention_params.h"

namespace attest::fixed_order {

/// Fills the outputs of `p` on its stream: three kernels, and five more for gradients. Throws LaunchError.
void launch_softmax(const AttentionParams& p);

}  // namespace attest::fixed_order
