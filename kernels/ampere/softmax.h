// softmax.cuda.mma_sync without the harness: attention on the matrix units of compute capability 8.0 and later, head dims up to
// 256, without a Sq × Skv buffer. Fill an AttentionParams (its workspace pointers are not used), allocate workspace_bytes(), call
// forward(), then backward() if gradients are wanted. Everything runs on p.stream of p.device; nothing is allocated, nothing
// synchronises, CUDA graphs can capture it. Inputs may have any strides and alignment; outputs have unit inner stride.
#pragma once

#include <optional>
#include <string>

#include "kernels/ampere/lengths.h"
#include "kernels/device/attention_params.h"

namespace attest::portable::softmax {

using fixed_order::AttentionParams;

/// Why these kernels don't take `p` on this device, e.g. "head_dim 320 is larger than 256"; nothing when they do.
std::optional<std::string> unsupported_reason(const AttentionParams& p);
/// 256-byte aligned memory of the calls below; see kernels/ampere/README.md. Less when !p.backward(). It need not be cleared.
int64_t workspace_bytes(const AttentionParams& p);

/// out and lse. `dominant`, int32 [batch, num_heads_q, seqlen_q] contiguous: per query the key (in its sequence) with more than half of
/// the weight, −1 where there is none; null when no backward will follow. It changes no bit of out and lse. Throws LaunchError.
void forward(const AttentionParams& p, int32_t* dominant, void* workspace, const Lengths& lengths = {});
/// dq, dk and dv, from p's out and lse and the `dominant` that forward() left with the same inputs. Throws LaunchError.
void backward(const AttentionParams& p, const int32_t* dominant, void* workspace, const Lengths& lengths = {});

}  // namespace attest::portable::softmax
