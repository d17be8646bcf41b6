// Sequences of different lengths in the tensors of one batch: packed one after another, or in buffers with room for more.
#pragma once

#include <vector>

#include "harness/oracle.h"
#include "harness/reference.h"
#include "harness/tensors.h"

namespace attest {

/// One sequence: queries [q_begin, q_begin + n_q) and keys [kv_begin, kv_begin + n_kv) of a batch element. Its query i stands
/// at n_kv − n_q + i, and sees keys of its own only.
struct Sequence {
  int64_t batch = 0, q_begin = 0, n_q = 0, kv_begin = 0, n_kv = 0;
};

/// The reference of `inputs` cut into sequences, shaped as the whole. What belongs to none (the tail of a cache, rows past a
/// length) is never read and has the value of a row without visible key. Throws UsageError for one that leaves its tensor.
Reference evaluate_sequences(const Oracle& oracle, const Inputs& inputs, const std::vector<Sequence>& sequences, size_t tier);

/// Buffers [B, H, capacity, D] of which batch element b uses the first seqlens[b] rows.
std::vector<Sequence> with_lengths(const std::vector<int64_t>& seqlens_q, const std::vector<int64_t>& seqlens_kv);

/// Packed [T, H, D] (dlse [Hq, T]), as one batch element [1, H, T, D] of views.
Inputs packed_as_batch(const AttentionProblem& problem, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                       const at::Tensor& dout, const at::Tensor& dlse);
/// cu_seqlens: 0, then where each sequence ends.
std::vector<Sequence> packed(const std::vector<int64_t>& cu_seqlens_q, const std::vector<int64_t>& cu_seqlens_kv);

}  // namespace attest
