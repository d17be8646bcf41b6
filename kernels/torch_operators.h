// Both operators as Torch operators, registered by torch_operators.cc for CPU, CUDA, Meta and autograd:
//   attest::softmax_attention(q, k, v, key_padding_mask=None, causal=False, scale=None) -> (out, lse)
//   attest::stickbreaking_attention(q, k, v, key_padding_mask=None, attend_current=False, scale=None) -> (out, rem)
// and, with the same arguments after Tensor? dout and Tensor? dlse (drem), attest::*_backward -> (dq, dk, dv).
// Shapes and dtypes as in AttentionProblem; scale None is 1/√D.
#pragma once

namespace attest {

inline constexpr char kSoftmaxOperator[] = "attest::softmax_attention";
inline constexpr char kStickBreakingOperator[] = "attest::stickbreaking_attention";

}  // namespace attest
