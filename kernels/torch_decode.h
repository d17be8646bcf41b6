// Decoding from a KV cache as Torch operators, registered by torch_decode.cc for CPU and Meta, by hopper/torch_decode_cuda.cc for CUDA:
//   attest::stickbreaking_decode(q, k_cache, v_cache, seqlens, key_padding_mask=None, attend_current=False, scale=None) -> (out, rem)
//   attest::kv_cache_append_(k_cache!, v_cache!, seqlens!, k, v)
// q [B, Hq, Sq, D], Sq ≤ 16: the last tokens of each sequence, so query i stands at seqlens[b] − Sq + i; append first, then decode.
// k_cache [B, Hkv, capacity, D], v_cache with Dv; what lies past a length, or under the mask (bool [B, capacity]), may hold anything.
// seqlens int32 [B], on the same device. No gradients. A length that doesn't fit: the CPU raises at once and writes nothing; CUDA writes
// nothing for that batch element, or takes the nearer end, and the next of these calls on the device raises.
#pragma once

#include <optional>

#include "harness/tensors.h"

namespace attest {

inline constexpr char kDecodeOperator[] = "attest::stickbreaking_decode";
inline constexpr char kAppendOperator[] = "attest::kv_cache_append_";

/// Raise a sentence where the arguments don't fit together, lengths apart. Sizes may be symbolic.
void check_decode(const at::Tensor& q, const at::Tensor& k_cache, const at::Tensor& v_cache, const at::Tensor& seqlens,
                  const std::optional<at::Tensor>& mask, std::optional<double> scale);
void check_append(const at::Tensor& k_cache, const at::Tensor& v_cache, const at::Tensor& seqlens, const at::Tensor& k,
                  const at::Tensor& v);

/// As if every length were the capacity.
Inputs decode_inputs(const at::Tensor& q, const at::Tensor& k_cache, const at::Tensor& v_cache, const std::optional<at::Tensor>& mask,
                     bool attend_current, std::optional<double> scale);

}  // namespace attest
