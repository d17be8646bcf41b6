// Both operators as Torch operators, registered by torch_operators.cc for CPU, CUDA, Meta and autograd:
//   attest::softmax_attention(q, k, v, key_padding_mask=None, causal=False, scale=None) -> (out, lse)
//   attest::stickbreaking_attention(q, k, v, key_padding_mask=None, attend_current=False, scale=None) -> (out, rem)
// and what autograd calls for them: attest::*_forward, with the same arguments, gives (out, lse or rem, saved);
//   attest::*_backward(Tensor? dout, Tensor? dlse, out, lse, saved, then the same arguments) -> (dq, dk, dv)
// Shapes and dtypes as in AttentionProblem; scale None is 1/√D. Between the two passes autograd keeps q, k, v, out and lse, and `saved`:
// softmax 4 · B · Hq · Sq bytes; stick-breaking the sticks of kernels/hopper/stick_saved.h, at most 512 MiB a call (64 MiB at
// B=1 Hq=16 Sq=Skv=8192), or nothing where they would be more: the backward then runs the forward again.
//
// On a GPU of compute capability 9.0 the fused kernels run where they take the inputs (fp16, bf16; head dims up to 128), else, without a word,
// the fixed-order ones: other bits, and slower by orders of magnitude. For gradients of stick-breaking attention lengths decide it, too: where
// the sticks of one KV head, 4 · Hq/Hkv · ⌈Sq/128⌉·128 · 2⌈Skv/128⌉ bytes, exceed 512 MiB (Sq = Skv = 92,700 with one query head for each KV
// head, 32,800 with eight), stickbreaking_attention_backward is fixed_order's. out and rem are not concerned.
#pragma once

namespace attest {

inline constexpr char kSoftmaxOperator[] = "attest::softmax_attention";
inline constexpr char kStickBreakingOperator[] = "attest::stickbreaking_attention";

}  // namespace attest
