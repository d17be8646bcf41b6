// stickbreaking.cuda.mma_sync without the harness: stick-breaking attention on the matrix units of compute capability 8.0 and later,
// head dims up to 256. As softmax.h, but lse is rem and dlse its gradient, and the forward saves sticks for the backward.
#pragma once

#include <optional>
#include <string>

#include "kernels/ampere/lengths.h"
#include "kernels/device/attention_params.h"

namespace attest::portable::stick {

using fixed_order::AttentionParams;

/// Why these kernels don't take `p` on this device; nothing when they do.
std::optional<std::string> unsupported_reason(const AttentionParams& p);
/// 256-byte aligned memory of the calls below; see kernels/ampere/README.md. Less when !p.backward(). It need not be cleared.
int64_t workspace_bytes(const AttentionParams& p);
/// What the forward leaves for the backward, 256-byte aligned: the stick of each query at every 64th key.
int64_t saved_bytes(const AttentionParams& p);

/// out and rem. `saved`: saved_bytes(p), or null when no backward will follow; it changes no bit of out and rem. Throws LaunchError.
void forward(const AttentionParams& p, void* saved, void* workspace, const Lengths& lengths = {});
/// dq, dk and dv, from p's rem and what forward() left in `saved` with the same inputs. Throws LaunchError.
void backward(const AttentionParams& p, void* saved, void* workspace, const Lengths& lengths = {});

}  // namespace attest::portable::stick
