// softmax.cuda.fused without the harness: attention on Hopper's matrix units without a Sq × Skv buffer. Fill an AttentionParams
// (its workspace pointers are not used), allocate workspace_bytes() and call forward(), then backward() if gradients are
// wanted. Everything runs on p.stream of p.device; nothing is allocated, nothing synchronises, CUDA graphs can capture it.
//
// A KV cache: p.seqlen_kv is the length, the strides of p.k and p.v are those of the whole cache. Nothing past the length is
// read. Decode, chunks and prefill give a query the same bits.
#pragma once

#include <optional>
#include <string>

#include "kernels/device/attention_params.h"

namespace attest::fused {

using fixed_order::AttentionParams;
using fixed_order::ElementType;
using fixed_order::View;

/// Why these kernels don't take `p` on this device, e.g. "head_dim 192 is larger than 128"; nothing when they do.
std::optional<std::string> unsupported_reason(const AttentionParams& p);

/// Of the calls below, 256-byte aligned memory; see kernels/hopper/README.md. Forward alone when !p.backward().
int64_t workspace_bytes(const AttentionParams& p);
/// Once for a new workspace, on p's stream. One call at a time may use a workspace, whatever its sizes; each leaves it so.
void clear_workspace(const AttentionParams& p, void* workspace);
/// Whether p's calls need that at all: a forward of few queries without `dominant` does not.
bool needs_cleared_workspace(const AttentionParams& p);

/// out and lse. `dominant`, int32 [batch, num_heads_q, seqlen_q] contiguous: per query the key with more than half of the weight,
/// −1 where there is none; null when no backward will follow. It changes no bit of out and lse. Throws LaunchError.
void forward(const AttentionParams& p, int32_t* dominant, void* workspace);

/// dq, dk and dv, from p's out and lse and the `dominant` that forward() left with the same inputs. Throws LaunchError.
void backward(const AttentionParams& p, const int32_t* dominant, void* workspace);

}  // namespace attest::fused
