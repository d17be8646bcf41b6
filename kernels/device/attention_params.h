// What a kernel of ours is given: plain data, no Torch, so that kernels can be lifted out whole. Both operators share it.
// Strides and sizes are in elements, 64-bit. The one visibility rule of our kernels is here, too.
#pragma once

#include <cstdint>

#include "kernels/device/host_device.h"

namespace attest::fixed_order {

enum class ElementType : uint8_t { kFloat16, kBFloat16, kFloat32 };

/// A 4-d tensor [batch, head, row, dim]; `dim` is 0 for [batch, head, row]. data is null when absent.
template <class T>
struct View {
  T* data = nullptr;
  int64_t batch = 0, head = 0, row = 0, dim = 0;

  ATTEST_HOST_DEVICE int64_t at(int64_t b, int64_t h, int64_t r, int64_t d = 0) const {
    return b * batch + h * head + r * row + d * dim;
  }
};

/// q, k, v, dout and the outputs are of `type`, lse (or rem) and its gradient fp32. Gradients are wanted iff dout is present.
struct AttentionParams {
  ElementType type = ElementType::kBFloat16;
  int64_t batch = 1, num_heads_q = 1, num_heads_kv = 1, seqlen_q = 1, seqlen_kv = 1, head_dim = 1, head_dim_v = 1;
  bool causal = false;
  bool attend_current = true;  // causal: key j is visible to query i iff j ≤ p_i, else j < p_i; p_i = Skv − Sq + i
  float softmax_scale = 1.0F;

  View<const void> q, k, v, dout;
  View<const float> dlse;
  const uint8_t* keep = nullptr;  // [batch, seqlen_kv], non-zero: the key exists; null: every key exists
  int64_t keep_batch = 0, keep_key = 0;

  View<void> out, dq, dk, dv;
  View<float> lse;

  // Workspace, fp32 [batch, num_heads_q, seqlen_q, seqlen_kv] each; entries of hidden keys are neither written nor read.
  float* logits = nullptr;    // z, where an operator needs it beside the weights; may equal `weights` without gradients
  float* weights = nullptr;   // P or A
  float* dlogits = nullptr;   // dP, then dz

  int device = 0;
  void* stream = nullptr;  // a cudaStream_t

  ATTEST_HOST_DEVICE bool backward() const { return dout.data != nullptr; }
  ATTEST_HOST_DEVICE int64_t group() const { return num_heads_q / num_heads_kv; }
  ATTEST_HOST_DEVICE int64_t num_rows() const { return batch * num_heads_q * seqlen_q; }

  /// Keys [0, visible_keys(i)) pass the causal mask for query i.
  ATTEST_HOST_DEVICE int64_t visible_keys(int64_t query) const {
    if (!causal) return seqlen_kv;
    const int64_t count = seqlen_kv - seqlen_q + query + (attend_current ? 1 : 0);
    return count < 0 ? 0 : count > seqlen_kv ? seqlen_kv : count;
  }
  /// The first query whose visible keys reach beyond `key`; seqlen_q when there is none.
  ATTEST_HOST_DEVICE int64_t first_query(int64_t key) const {
    if (!causal) return 0;
    const int64_t first = key + 1 - (attend_current ? 1 : 0) - (seqlen_kv - seqlen_q);
    return first < 0 ? 0 : first > seqlen_q ? seqlen_q : first;
  }
  ATTEST_HOST_DEVICE bool kept(int64_t b, int64_t key) const {
    return keep == nullptr || keep[b * keep_batch + key * keep_key] != 0;
  }
};

}  // namespace attest::fixed_order
