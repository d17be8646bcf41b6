// Inputs for the tests of the oracles.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "harness/oracle.h"
#include "harness/reference.h"
#include "harness/tensors.h"

namespace attest {

inline Reference reference_of(const Inputs& in) {
  const bool softmax = in.problem.op == Op::kSoftmax;
  return Registry<Oracle>::instance().find(softmax ? "softmax.definition" : "stickbreaking.definition")->evaluate(in, 0);
}

/// Normal numbers in the problem's dtype, q times `gain`; with dout and dlse.
inline Inputs normal_inputs(const AttentionProblem& p, uint64_t seed, double gain = 1) {
  at::manual_seed(seed);
  const auto draw = [&](std::vector<int64_t> shape, at::ScalarType type, double factor = 1) {
    return (at::randn(shape, at::TensorOptions(at::kDouble)) * factor).to(type);
  };
  const at::ScalarType type = scalar_type(p.dtype);
  Inputs in;
  in.problem = p;
  in.q = draw({p.batch, p.num_heads_q, p.seqlen_q, p.head_dim}, type, gain);
  in.k = draw({p.batch, p.num_heads_kv, p.seqlen_kv, p.head_dim}, type);
  in.v = draw({p.batch, p.num_heads_kv, p.seqlen_kv, p.head_dim_v}, type);
  in.dout = draw({p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v}, type);
  in.dlse = draw({p.batch, p.num_heads_q, p.seqlen_q}, at::kFloat);
  return in;
}

/// Hides each key with probability 1/4 and puts NaN there.
inline void hide_some_keys(Inputs& in) {
  const AttentionProblem& p = in.problem;
  in.key_padding_mask = at::rand({p.batch, p.seqlen_kv}, at::TensorOptions(at::kDouble)) > 0.25;
  const at::Tensor hidden = in.key_padding_mask.logical_not().view({p.batch, 1, p.seqlen_kv, 1});
  in.k.masked_fill_(hidden, NAN);
  in.v.masked_fill_(hidden, NAN);
}

/// One query, D = Dv = 1, q = scale = 1, fp32: the logits are `z`, dP_j = dout·v_j. Every key is visible.
inline Inputs one_query(Op op, const std::vector<float>& z, const std::vector<float>& v, float dout, float dlse = 0) {
  const auto n = static_cast<int64_t>(z.size());
  const auto row = [](const std::vector<float>& x) {
    return at::tensor(at::ArrayRef<float>(x), at::TensorOptions(at::kFloat)).view({1, 1, static_cast<int64_t>(x.size()), 1});
  };
  const bool stick = op == Op::kStickBreaking;
  Inputs in;
  in.problem = {.op = op, .dtype = Dtype::kFloat32, .seqlen_kv = n, .causal = stick, .attend_current = stick};
  in.q = row({1});
  in.k = row(z);
  in.v = row(v);
  in.dout = row({dout});
  in.dlse = at::full({1, 1, 1}, dlse, at::TensorOptions(at::kFloat));
  return in;
}

inline double value_at(const Reference& r, Quantity quantity, int64_t index = 0) {
  return r[quantity].value.flatten()[index].item<double>();
}
inline double radius_at(const Reference& r, Quantity quantity, int64_t index = 0) {
  return r[quantity].radius.flatten()[index].item<double>();
}

/// Equal but for the rounding of `expected`, a closed form evaluated in double.
inline void expect_close(double actual, double expected) { EXPECT_NEAR(actual, expected, 8e-16 * std::fabs(expected)); }

}  // namespace attest
