// stickbreaking.cuda.fused without the harness: stick-breaking attention on Hopper's matrix units without a Sq × Skv buffer of
// scores. Fill an AttentionParams (its workspace pointers are not used; lse is rem, dlse its gradient), allocate workspace_bytes()
// and saved_bytes(), and call forward(), then backward() if gradients are wanted. Everything runs on p.stream of p.device;
// nothing is allocated, nothing synchronises, CUDA graphs can capture it.
#pragma once

#include <optional>
#include <string>

#include "kernels/device/attention_params.h"

namespace attest::stick {

using fixed_order::AttentionParams;
using fixed_order::ElementType;
using fixed_order::View;

/// Why these kernels don't take `p` on this device, e.g. "head_dim 192 is larger than 128"; nothing when they do.
std::optional<std::string> unsupported_reason(const AttentionParams& p);

/// 256-byte aligned memory of the calls below; see kernels/hopper/README.md. Less when !p.backward().
int64_t workspace_bytes(const AttentionParams& p);
/// Once for a new workspace, on p's stream. One call at a time may use a workspace, whatever its sizes; each leaves it so.
void clear_workspace(const AttentionParams& p, void* workspace);

/// What the forward can leave for the backward, 256-byte aligned: the stick of each query at every 64th key. At most 512 MiB;
/// where it would be more it is 0, and the backward recomputes it by groups of heads.
int64_t saved_bytes(const AttentionParams& p);

/// out and rem. `saved`: saved_bytes(p), or null when no backward will follow; it changes no bit of out and rem. Throws LaunchError.
void forward(const AttentionParams& p, void* saved, void* workspace);

/// dq, dk and dv, from p's rem and what forward() left in `saved` with the same inputs (null where saved_bytes() is 0). Throws
/// LaunchError.
void backward(const AttentionParams& p, void* saved, void* workspace);

}  // namespace attest::stick
