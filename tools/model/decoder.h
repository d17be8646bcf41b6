// A small decoder-only language model on libtorch, as a user of the stick-breaking operators: token embedding, layers of RMSNorm,
// stick-breaking attention (which needs no encoding of positions), RMSNorm and a gated MLP, a last RMSNorm and the logits. Weights are random.
//
// Unusual: whatever works on single tokens gets exactly kRows of them at a time, padded with zeros, so that libtorch takes the same
// kernels for a prompt of any length as for one decoded token. With attention that is batch-invariant the whole step is then
// bitwise: a cached step gives the logits that an uncached forward over all tokens gives for its last one.
#pragma once

#include <functional>
#include <vector>

#include "harness/tensors.h"

namespace attest::model {

/// Tokens that linear layers and norms get at a time.
inline constexpr int64_t kRows = 128;

struct Shape {
  int64_t vocabulary = 4096, layers = 4, hidden = 1024, num_heads_q = 8, num_heads_kv = 2, head_dim = 128, mlp = 2816;
};

/// Keys and values of the tokens so far, of each layer: [batch, num_heads_kv, capacity, head_dim], of which the first
/// seqlens[layer][b] rows exist; between steps these are the same in all layers.
struct Cache {
  std::vector<at::Tensor> k, v;
  at::Tensor seqlens;  // int32 [layers, batch]
};

struct Layer {
  at::Tensor norm_attention, wqkv, wo, norm_mlp, wgate_up, wdown;  // weights [out, in]
};

class Decoder {
 public:
  /// Random weights from `seed`, of `dtype` on `device`.
  Decoder(const Shape& shape, Dtype dtype, Device device, uint64_t seed);

  const Shape& shape() const { return shape_; }
  /// Empty, for `capacity` tokens a sequence; the rows hold NaN.
  Cache make_cache(int64_t batch, int64_t capacity) const;

  /// Logits [batch, tokens, vocabulary] of int64 tokens [batch, tokens], without a cache; or of the last token of each alone.
  at::Tensor forward(const at::Tensor& tokens, bool last_only = false) const;
  /// The same, and their keys and values go into an empty `cache`.
  at::Tensor prefill(const at::Tensor& tokens, Cache& cache) const;
  /// Logits of 1 … 16 further tokens a sequence, which join the cache. Throws when it has no room.
  at::Tensor step(const at::Tensor& tokens, Cache& cache) const;

 private:
  /// out [batch, num_heads_q, tokens, head_dim] of one layer's q, k, v [batch, heads, tokens, head_dim].
  using Attention = std::function<at::Tensor(size_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v)>;
  at::Tensor run(const at::Tensor& tokens, bool last_only, const Attention& attention) const;
  at::Tensor attend(const Layer& layer, size_t index, const at::Tensor& rows, at::IntArrayRef tokens, const Attention& attention) const;

  Shape shape_;
  at::TensorOptions options_;
  at::Tensor embedding_, norm_, head_;
  std::vector<Layer> layers_;
};

}  // namespace attest::model
