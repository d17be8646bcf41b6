#include "tools/model/decoder.h"

#include <cmath>
#include <limits>

#include "kernels/torch_functions.h"

namespace attest::model {
namespace {

/// `f` on kRows rows of x [n, …] at a time, the last of them padded with zeros.
at::Tensor by_rows(const at::Tensor& x, const std::function<at::Tensor(const at::Tensor&)>& f) {
  const int64_t n = x.size(0);
  std::vector<at::Tensor> parts;
  for (int64_t i = 0; i < n; i += kRows) {
    const int64_t count = std::min(kRows, n - i);
    at::Tensor part = x.narrow(0, i, count);
    if (count < kRows) part = at::cat({part, at::zeros({kRows - count, x.size(1)}, x.options())});
    parts.push_back(f(part).narrow(0, 0, count));
  }
  return parts.size() == 1 ? parts.front() : at::cat(parts);
}

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight) { return at::rms_norm(x, weight.sizes(), weight, 1e-6); }

at::Tensor gated_mlp(const Layer& layer, const at::Tensor& x) {
  const std::vector<at::Tensor> halves = at::linear(rms_norm(x, layer.norm_mlp), layer.wgate_up).chunk(2, -1);
  return x + at::linear(at::silu(halves[0]) * halves[1], layer.wdown);
}

void append(Cache& cache, size_t layer, const at::Tensor& k, const at::Tensor& v) {
  at::Tensor seqlens = cache.seqlens.select(0, static_cast<int64_t>(layer));
  torch_functions::kv_cache_append_(cache.k[layer], cache.v[layer], seqlens, k, v);
}

}  // namespace

Decoder::Decoder(const Shape& shape, Dtype dtype, Device device, uint64_t seed)
    : shape_(shape), options_(at::TensorOptions(scalar_type(dtype)).device(torch_device(device))) {
  at::manual_seed(seed);
  const auto weight = [&](int64_t out, int64_t in) { return at::randn({out, in}, options_) / std::sqrt(static_cast<double>(in)); };
  const auto norm = [&] { return at::randn({shape.hidden}, options_) * 0.1 + 1; };
  const int64_t q = shape.num_heads_q * shape.head_dim, kv = shape.num_heads_kv * shape.head_dim;
  embedding_ = at::randn({shape.vocabulary, shape.hidden}, options_);
  for (int64_t i = 0; i < shape.layers; ++i)
    layers_.push_back({norm(), weight(q + 2 * kv, shape.hidden), weight(shape.hidden, q), norm(), weight(2 * shape.mlp, shape.hidden),
                       weight(shape.hidden, shape.mlp)});
  norm_ = norm();
  head_ = weight(shape.vocabulary, shape.hidden);
}

Cache Decoder::make_cache(int64_t batch, int64_t capacity) const {
  Cache cache;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (int64_t i = 0; i < shape_.layers; ++i) {
    cache.k.push_back(at::full({batch, shape_.num_heads_kv, capacity, shape_.head_dim}, nan, options_));
    cache.v.push_back(at::full_like(cache.k.back(), nan));
  }
  cache.seqlens = at::zeros({shape_.layers, batch}, options_.dtype(at::kInt));
  return cache;
}

at::Tensor Decoder::attend(const Layer& layer, size_t index, const at::Tensor& rows, at::IntArrayRef tokens,
                           const Attention& attention) const {
  const int64_t d = shape_.head_dim, hq = shape_.num_heads_q, hkv = shape_.num_heads_kv;
  const at::Tensor qkv = by_rows(rows, [&](const at::Tensor& x) { return at::linear(rms_norm(x, layer.norm_attention), layer.wqkv); });
  const at::Tensor heads = qkv.view({tokens[0], tokens[1], hq + 2 * hkv, d}).transpose(1, 2);  // views, as a serving loop has them
  const at::Tensor out = attention(index, heads.narrow(1, 0, hq), heads.narrow(1, hq, hkv), heads.narrow(1, hq + hkv, hkv));
  return out.transpose(1, 2).reshape({rows.size(0), hq * d});
}

at::Tensor Decoder::run(const at::Tensor& tokens, bool last_only, const Attention& attention) const {
  at::Tensor x = at::embedding(embedding_, tokens.reshape({-1}));
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    const at::Tensor out = attend(layer, i, x, tokens.sizes(), attention);
    x = by_rows(at::cat({x, out}, 1), [&](const at::Tensor& both) {
      return gated_mlp(layer, both.narrow(1, 0, shape_.hidden) + at::linear(both.narrow(1, shape_.hidden, out.size(1)), layer.wo));
    });
  }
  if (last_only) x = x.view({tokens.size(0), tokens.size(1), shape_.hidden}).select(1, tokens.size(1) - 1);
  const at::Tensor logits = by_rows(x, [&](const at::Tensor& rows) { return at::linear(rms_norm(rows, norm_), head_); });
  return logits.view({tokens.size(0), -1, shape_.vocabulary});
}

at::Tensor Decoder::forward(const at::Tensor& tokens, bool last_only) const {
  return run(tokens, last_only, [](size_t, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    return std::get<0>(torch_functions::stickbreaking_attention(q, k, v));
  });
}

at::Tensor Decoder::prefill(const at::Tensor& tokens, Cache& cache) const {
  return run(tokens, false, [&](size_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    append(cache, layer, k, v);
    return std::get<0>(torch_functions::stickbreaking_attention(q, k, v));
  });
}

at::Tensor Decoder::step(const at::Tensor& tokens, Cache& cache) const {
  return run(tokens, false, [&](size_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    append(cache, layer, k, v);
    const at::Tensor seqlens = cache.seqlens.select(0, static_cast<int64_t>(layer));
    return std::get<0>(torch_functions::stickbreaking_decode(q, cache.k[layer], cache.v[layer], seqlens));
  });
}

}  // namespace attest::model
