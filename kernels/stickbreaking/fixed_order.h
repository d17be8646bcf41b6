// The launches of stickbreaking.cuda.fixed_order. Workspace: `weights`; `logits`, which may be the same when no gradients are
// wanted; and `dlogits` for gradients.
#pragma once

#include "kernels/device/attention_params.h"

namespace attest::fixed_order {

/// Fills the outputs of `p` on its stream: three kernels, and five more for gradients. Throws LaunchError.
void launch_stickbreaking(const AttentionParams& p);

}  // namespace attest::fixed_order
