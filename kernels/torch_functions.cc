#include "kernels/torch_functions.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>

namespace attest::torch_functions {
namespace {

using at::Tensor;
using Pair = std::tuple<Tensor, Tensor>;
using MaybeTensor = std::optional<Tensor>;

template <class Signature>
c10::TypedOperatorHandle<Signature> find(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

}  // namespace

Pair stickbreaking_attention(const Tensor& q, const Tensor& k, const Tensor& v) {
  static const auto op = find<Pair(const Tensor&, const Tensor&, const Tensor&, const MaybeTensor&, bool, std::optional<double>)>(
      "attest::stickbreaking_attention");
  return op.call(q, k, v, std::nullopt, false, std::nullopt);
}

Pair stickbreaking_decode(const Tensor& q, const Tensor& k_cache, const Tensor& v_cache, const Tensor& seqlens) {
  static const auto op = find<Pair(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const MaybeTensor&, bool,
                                   std::optional<double>)>("attest::stickbreaking_decode");
  return op.call(q, k_cache, v_cache, seqlens, std::nullopt, false, std::nullopt);
}

void kv_cache_append_(Tensor& k_cache, Tensor& v_cache, Tensor& seqlens, const Tensor& k, const Tensor& v) {
  static const auto op = find<void(Tensor&, Tensor&, Tensor&, const Tensor&, const Tensor&)>("attest::kv_cache_append_");
  op.call(k_cache, v_cache, seqlens, k, v);
}

}  // namespace attest::torch_functions
