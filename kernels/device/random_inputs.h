// Inputs for the tests of our own kernels: normal values from Torch's generator, right-aligned causal masks, random key padding.
#pragma once

#include <string>

#include "harness/tensors.h"
#include "harness/variant.h"

namespace attest::fixed_order {

inline Inputs random_inputs(const AttentionProblem& p, bool padding, uint64_t seed = 1) {
  at::manual_seed(seed);
  const auto type = scalar_type(p.dtype);
  Inputs in{.problem = p};
  in.q = at::randn({p.batch, p.num_heads_q, p.seqlen_q, p.head_dim}).to(type);
  in.k = at::randn({p.batch, p.num_heads_kv, p.seqlen_kv, p.head_dim}).to(type);
  in.v = at::randn({p.batch, p.num_heads_kv, p.seqlen_kv, p.head_dim_v}).to(type);
  in.dout = at::randn({p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v}).to(type);
  in.dlse = at::randn({p.batch, p.num_heads_q, p.seqlen_q});
  if (padding) in.key_padding_mask = at::rand({p.batch, p.seqlen_kv}) < 0.7;
  return in;
}

inline Outputs run_variant(const std::string& name, const Inputs& in) {
  return Registry<KernelVariant>::instance().find(name)->run(in);
}

/// Shape, type and every bit; +0 differs from −0.
inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  const auto integers = a.element_size() == 2 ? at::kShort : at::kInt;
  return at::equal(a.contiguous().view(integers), b.contiguous().view(integers));
}

inline const char* variant_prefix(Op op) { return op == Op::kSoftmax ? "softmax" : "stickbreaking"; }

}  // namespace attest::fixed_order
