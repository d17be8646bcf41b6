// The Torch operators of this project as C++ functions with types, called through Torch's dispatcher, so that autograd, tracing and devices
// are as for any operator. What they take and throw is said in torch_operators.h.
#pragma once

#include <tuple>

#include "harness/tensors.h"

namespace attest::torch_functions {

/// out [B, Hq, Sq, Dv] and rem, fp32 [B, Hq, Sq]; without padding, scale 1/√D, a query doesn't see its own key.
std::tuple<at::Tensor, at::Tensor> stickbreaking_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);

/// The same of the last Sq ≤ 16 tokens in a cache [B, Hkv, capacity, D], of which batch element b has seqlens[b].
std::tuple<at::Tensor, at::Tensor> stickbreaking_decode(const at::Tensor& q, const at::Tensor& k_cache, const at::Tensor& v_cache,
                                                        const at::Tensor& seqlens);

/// Writes k and v [B, Hkv, n, D] behind what the cache holds, and adds n to seqlens.
void kv_cache_append_(at::Tensor& k_cache, at::Tensor& v_cache, at::Tensor& seqlens, const at::Tensor& k, const at::Tensor& v);

}  // namespace attest::torch_functions
