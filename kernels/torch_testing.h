// For the tests of the Torch variants: random inputs and the definition of softmax attention in double, through autograd.
#pragma once

#include <c10/util/Exception.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "harness/mask.h"
#include "harness/tensors.h"
#include "kernels/torch_grad.h"

namespace attest {

/// What a call of an operator throws, or "".
inline std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

inline at::Tensor random_tensor(at::IntArrayRef sizes, at::ScalarType type) {
  return at::randn(sizes, at::TensorOptions(at::kFloat)).to(type);
}

/// Forward and backward inputs on the CPU. `padded_keys` at the end of every sequence but the first are hidden.
inline Inputs random_inputs(const AttentionProblem& p, int64_t padded_keys = 0, bool with_dlse = false) {
  const auto type = p.dtype == Dtype::kFloat16 ? at::kHalf : p.dtype == Dtype::kBFloat16 ? at::kBFloat16 : at::kFloat;
  Inputs in{.problem = p,
            .q = random_tensor({p.batch, p.num_heads_q, p.seqlen_q, p.head_dim}, type),
            .k = random_tensor({p.batch, p.num_heads_kv, p.seqlen_kv, p.head_dim}, type),
            .v = random_tensor({p.batch, p.num_heads_kv, p.seqlen_kv, p.head_dim_v}, type),
            .dout = random_tensor({p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v}, type)};
  if (with_dlse) in.dlse = random_tensor({p.batch, p.num_heads_q, p.seqlen_q}, at::kFloat);
  if (padded_keys > 0) {
    in.key_padding_mask = at::ones({p.batch, p.seqlen_kv}, at::kBool);
    in.key_padding_mask.slice(0, 1).slice(1, p.seqlen_kv - padded_keys).fill_(false);
  }
  return in;
}

/// bool [B, 1, Sq, Skv], from the one definition of visibility.
inline at::Tensor visible_keys(const Inputs& in) {
  const AttentionProblem& p = in.problem;
  const at::Tensor keep = in.key_padding_mask.defined() ? in.key_padding_mask.to(at::kByte).contiguous() : at::Tensor();
  const Mask mask{p, keep.defined() ? keep.data_ptr<uint8_t>() : nullptr};
  at::Tensor visible = at::zeros({p.batch, 1, p.seqlen_q, p.seqlen_kv}, at::kBool);
  auto cells = visible.accessor<bool, 4>();
  for (int64_t b = 0; b < p.batch; ++b)
    for (int64_t i = 0; i < p.seqlen_q; ++i)
      for (int64_t j = 0; j < p.seqlen_kv; ++j) cells[b][0][i][j] = mask.allows(b, i, j);
  return visible;
}

/// Rows with no visible key are not handled.
inline Outputs softmax_in_double(Inputs in) {
  const AttentionProblem& p = in.problem;
  const at::Tensor hidden = visible_keys(in).logical_not();
  for (at::Tensor* t : {&in.q, &in.k, &in.v, &in.dout, &in.dlse})
    if (t->defined()) *t = t->to(at::kDouble);
  return run_with_autograd(in, [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    const at::Tensor keys = k.repeat_interleave(p.group(), 1), values = v.repeat_interleave(p.group(), 1);
    const at::Tensor z = (at::matmul(q, keys.transpose(2, 3)) * static_cast<double>(p.softmax_scale))
                             .masked_fill(hidden, -std::numeric_limits<double>::infinity());
    return std::vector<at::Tensor>{at::matmul(z.softmax(-1), values), z.logsumexp(-1)};
  });
}

}  // namespace attest
