// Both oracles against libtorch's automatic differentiation in double, from another form of the definitions: masked softmax
// and logsumexp; stick-breaking in the log domain.
#include <gtest/gtest.h>

#include "harness/mask.h"
#include "oracles/test_inputs.h"

namespace attest {
namespace {

/// [B, 1, Sq, Skv]
at::Tensor visible(const Inputs& in) {
  const AttentionProblem& p = in.problem;
  const at::Tensor keep = in.key_padding_mask.defined() ? in.key_padding_mask.to(at::kByte).contiguous() : at::Tensor();
  const Mask mask{p, keep.defined() ? keep.const_data_ptr<uint8_t>() : nullptr};
  at::Tensor out = at::zeros({p.batch, 1, p.seqlen_q, p.seqlen_kv}, at::TensorOptions(at::kBool));
  bool* data = out.mutable_data_ptr<bool>();
  for (int64_t b = 0; b < p.batch; ++b)
    for (int64_t i = 0; i < p.seqlen_q; ++i)
      for (int64_t j = 0; j < p.seqlen_kv; ++j) *data++ = mask.allows(b, i, j);
  return out;
}

struct Result {
  at::Tensor out, lse, weights;
};

// A row without visible key: logits 0 in place of −∞, so that no NaN enters the graph, and the row is multiplied by 0.
Result softmax(const at::Tensor& z, const at::Tensor& v, const at::Tensor& see) {
  const at::Tensor alive = see.any(-1, true);
  const at::Tensor masked = z.masked_fill(see.logical_not().logical_and(alive), -INFINITY);
  const at::Tensor weights = at::softmax(masked, -1) * alive;
  const at::Tensor lse = at::logsumexp(masked, {-1}).masked_fill(alive.squeeze(-1).logical_not(), -INFINITY);
  return {weights.matmul(v), lse, weights};
}

Result stickbreaking(const at::Tensor& z, const at::Tensor& v, const at::Tensor& see) {
  const at::Tensor log_rest = at::log_sigmoid(-z) * see;
  const at::Tensor total = log_rest.sum(-1, true);
  const at::Tensor nearer = total - log_rest.cumsum(-1);
  const at::Tensor weights = (at::log_sigmoid(z) + nearer).exp() * see;
  return {weights.matmul(v), total.squeeze(-1).exp(), weights};
}

Outputs automatic(const Inputs& in) {
  const AttentionProblem& p = in.problem;
  const auto leaf = [](const at::Tensor& x) {
    return at::nan_to_num(x.to(at::kDouble), 0.0).detach().clone().set_requires_grad(true);
  };
  const at::Tensor q = leaf(in.q), k = leaf(in.k), v = leaf(in.v);
  const at::Tensor z = q.matmul(k.repeat_interleave(p.group(), 1).transpose(-1, -2)) * static_cast<double>(p.softmax_scale);
  const at::Tensor values = v.repeat_interleave(p.group(), 1), see = visible(in).expand_as(z);
  const Result r = p.op == Op::kSoftmax ? softmax(z, values, see) : stickbreaking(z, values, see);
  const at::Tensor finite_lse = r.lse.masked_fill(see.any(-1).logical_not(), 0);
  ((r.out * in.dout.to(at::kDouble)).sum() + (finite_lse * in.dlse.to(at::kDouble)).sum()).backward();
  return {r.out.detach(), r.lse.detach(), q.grad(), k.grad(), v.grad()};
}

/// Within 1e-12 of the largest finite element; infinities where the other has them.
void expect_agreement(const Inputs& in) {
  const Reference reference = reference_of(in);
  const Outputs expected = automatic(in);
  for (size_t n = 0; n < enum_size<Quantity>(); ++n) {
    const auto quantity = static_cast<Quantity>(n);
    const at::Tensor &a = reference[quantity].value, &e = expected[quantity];
    ASSERT_EQ(a.sizes(), e.sizes());
    ASSERT_TRUE(a.isfinite().equal(e.isfinite())) << name_of(quantity);
    const at::Tensor difference = (at::nan_to_num(a, 0, 0, 0) - at::nan_to_num(e, 0, 0, 0)).abs();
    const double size = at::nan_to_num(e, 0, 0, 0).abs().max().item<double>();
    EXPECT_LE(difference.max().item<double>(), 1e-12 * size + 1e-300) << name_of(quantity) << ' ' << in.problem.seqlen_q;
    EXPECT_TRUE(reference[quantity].terms.ge(0).all().item<bool>());
    EXPECT_TRUE(reference[quantity].terms.isfinite().all().item<bool>());
    EXPECT_TRUE(reference[quantity].radius.ge(0).all().item<bool>());
  }
}

TEST(OracleAgainstAutograd, softmax_over_masks_heads_and_lengths) {
  uint64_t seed = 0;
  for (const bool causal : {false, true})
    for (const bool padded : {false, true})
      for (const auto& [sq, skv] : {std::pair<int64_t, int64_t>{5, 9}, {9, 5}, {1, 17}, {6, 6}}) {
        Inputs in = normal_inputs({.dtype = padded ? Dtype::kBFloat16 : Dtype::kFloat32, .batch = 2, .num_heads_q = 4,
                                   .num_heads_kv = 2, .seqlen_q = sq, .seqlen_kv = skv, .head_dim = 8, .head_dim_v = 5,
                                   .causal = causal, .softmax_scale = causal ? 0.35F : -0.5F}, ++seed);
        if (padded) hide_some_keys(in);
        expect_agreement(in);
      }
}

TEST(OracleAgainstAutograd, stickbreaking_over_masks_heads_and_lengths) {
  uint64_t seed = 100;
  for (const bool current : {false, true})
    for (const bool padded : {false, true})
      for (const auto& [sq, skv] : {std::pair<int64_t, int64_t>{5, 9}, {9, 5}, {1, 17}, {6, 6}}) {
        Inputs in = normal_inputs({.op = Op::kStickBreaking, .dtype = padded ? Dtype::kFloat16 : Dtype::kFloat32, .batch = 2,
                                   .num_heads_q = 6, .num_heads_kv = 2, .seqlen_q = sq, .seqlen_kv = skv, .head_dim = 8,
                                   .head_dim_v = 5, .causal = true, .attend_current = current,
                                   .softmax_scale = current ? 0.35F : -0.5F}, ++seed);
        if (padded) hide_some_keys(in);
        expect_agreement(in);
      }
}

}  // namespace
}  // namespace attest
