// A Torch operator in a shared library of its own, for `attest run --load FILE.so --variant torch:mine::attention`.
// What it is: softmax attention from Torch's own operations, in fp32; Torch differentiates it.
// What is unusual: nothing of Attest is needed. Arguments are recognised by name (kernels/torch_call.h), and what has no
// argument here (key padding) narrows the domain.
#include <ATen/ATen.h>
#include <torch/library.h>

#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

/// q [B, Hq, Sq, D], k [B, Hkv, Skv, D], v [B, Hkv, Skv, Dv] → out [B, Hq, Sq, Dv], lse fp32 [B, Hq, Sq].
std::tuple<at::Tensor, at::Tensor> attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal,
                                             std::optional<double> scale) {
  const int64_t group = q.size(1) / k.size(1), before = k.size(2) - q.size(2);
  const auto of_query_heads = [&](const at::Tensor& t) { return t.to(at::kFloat).repeat_interleave(group, 1); };
  at::Tensor z = at::matmul(q.to(at::kFloat), of_query_heads(k).transpose(-1, -2));
  z = z * scale.value_or(1 / std::sqrt(static_cast<double>(q.size(3))));
  if (causal) z = z.masked_fill(at::ones({q.size(2), k.size(2)}, q.options().dtype(at::kBool)).tril(before).logical_not(), kHidden);
  const at::Tensor lse = z.logsumexp(-1);
  const at::Tensor p = (z - lse.masked_fill(lse.eq(kHidden), 0).unsqueeze(-1)).exp();  // a row without a visible key: 0
  return {at::matmul(p, of_query_heads(v)).to(q.scalar_type()), lse};
}

}  // namespace

TORCH_LIBRARY(mine, m) {
  m.def("attention(Tensor q, Tensor k, Tensor v, bool causal=False, float? scale=None) -> (Tensor out, Tensor lse)", attention);
}
