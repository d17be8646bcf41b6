// Which of our kernels the Torch operators run: OP.cuda.fused where it takes the inputs, else OP.cuda.fixed_order;
// OP.cpu.fixed_order on a CPU. Which one depends on the dtype, the head dims and the GPU, and on batch and lengths only beyond
// the fused kernels' limits (stick-breaking gradients of some 30,000 tokens with 8 query heads a KV head:
// kernels/hopper/STICKBREAKING.md).
#pragma once

#include <c10/core/SymInt.h>

#include "harness/tensors.h"

namespace attest {

/// Bytes that a forward may leave for its backward; a function of sizes alone, on every device. `heads`: batch · query heads.
c10::SymInt saved_bytes_of_ours(Op op, const c10::SymInt& heads, const c10::SymInt& seqlen_q, const c10::SymInt& seqlen_kv);

/// out and lse (or rem). `saved`: kByte [saved_bytes_of_ours()], filled for the backward by kernels that come in two halves;
/// undefined: there will be none. Raises where no kernel takes the inputs.
Outputs forward_of_ours(const Inputs& in, const at::Tensor& saved);

/// dq, dk and dv, from `out`, `lse` and `saved` of the forward of the same inputs; kernels of one piece run it again.
Outputs backward_of_ours(const Inputs& in, const at::Tensor& out, const at::Tensor& lse, const at::Tensor& saved);

}  // namespace attest
