// Laws that both host twins keep, bit for bit where the reduction contracts say so.
#include "kernels/device/fixed_order_host.h"

#include <gtest/gtest.h>

#include <limits>

#include "kernels/device/random_inputs.h"

namespace attest::fixed_order {
namespace {

using at::indexing::None;
using at::indexing::Slice;

AttentionProblem problem_of(Op op, Dtype dtype = Dtype::kBFloat16) {
  return {.op = op, .dtype = dtype, .batch = 3, .num_heads_q = 4, .num_heads_kv = 2, .seqlen_q = 19, .seqlen_kv = 301,
          .head_dim = 24, .head_dim_v = 17, .causal = true, .attend_current = op == Op::kStickBreaking,
          .softmax_scale = 0.21F};
}

class FixedOrderHost : public testing::TestWithParam<Op> {
 protected:
  Outputs run(const Inputs& in) const { return run_variant(std::string(variant_prefix(GetParam())) + ".cpu.fixed_order", in); }
};

void expect_same(const Outputs& a, const Outputs& b) {
  EXPECT_TRUE(same_bits(a.out, b.out));
  EXPECT_TRUE(same_bits(a.lse, b.lse));
  if (!a.dq.defined() || !b.dq.defined()) return;
  EXPECT_TRUE(same_bits(a.dq, b.dq));
  EXPECT_TRUE(same_bits(a.dk, b.dk));
  EXPECT_TRUE(same_bits(a.dv, b.dv));
}

/// Weights by the definition, in double: hidden logits are −inf.
at::Tensor weights_by_definition(const at::Tensor& z, Op op, at::Tensor& lse) {
  if (op == Op::kSoftmax) {
    lse = z.logsumexp(-1);
    return z.softmax(-1);
  }
  const at::Tensor kept = (-z).sigmoid().flip(-1).cumprod(-1).flip(-1);  // stick left once key j has had its share
  const at::Tensor before = at::cat({kept, at::ones_like(kept.narrow(-1, 0, 1))}, -1).narrow(-1, 1, kept.size(-1));
  lse = kept.select(-1, 0);
  return z.sigmoid() * before;
}

at::Tensor hidden(const Inputs& in) {
  const AttentionProblem& p = in.problem;
  const at::Tensor i = at::arange(p.seqlen_q).unsqueeze(1) + (p.seqlen_kv - p.seqlen_q);
  const at::Tensor j = at::arange(p.seqlen_kv).unsqueeze(0);
  at::Tensor h = p.op == Op::kSoftmax || p.attend_current ? j > i : j >= i;
  if (!p.causal) h = at::zeros_like(h);
  return in.key_padding_mask.defined() ? h.logical_or(in.key_padding_mask.logical_not().unsqueeze(1).unsqueeze(1)) : h;
}

Outputs by_automatic_differentiation(const Inputs& in) {
  const AttentionProblem& p = in.problem;
  const auto leaf = [](const at::Tensor& t) { return t.to(at::kDouble).clone().set_requires_grad(true); };
  const at::Tensor q = leaf(in.q), k = leaf(in.k), v = leaf(in.v);
  const at::Tensor z = (q.matmul(k.repeat_interleave(p.group(), 1).transpose(2, 3)) * static_cast<double>(p.softmax_scale))
                           .masked_fill(hidden(in), -std::numeric_limits<double>::infinity());
  Outputs o;
  const at::Tensor weights = weights_by_definition(z, p.op, o.lse);
  o.out = weights.matmul(v.repeat_interleave(p.group(), 1));
  ((o.out * in.dout.to(at::kDouble)).sum() + (o.lse * in.dlse.to(at::kDouble)).sum()).backward();
  o.dq = q.grad();
  o.dk = k.grad();
  o.dv = v.grad();
  return o;
}

TEST_P(FixedOrderHost, agrees_with_automatic_differentiation_in_double) {
  AttentionProblem p = problem_of(GetParam(), Dtype::kFloat32);
  for (const bool causal : {true, false}) {
    if (GetParam() == Op::kStickBreaking) p.attend_current = causal;
    if (GetParam() == Op::kSoftmax) p.causal = causal;
    for (const float scale : {0.21F, 0.0F, -0.4F}) {
      p.softmax_scale = scale;
      const Inputs in = random_inputs(p, true);
      const Outputs actual = run(in), expected = by_automatic_differentiation(in);
      for (const Quantity q : EnumSet<Quantity>::all().members())
        EXPECT_LE((actual[q].to(at::kDouble) - expected[q]).abs().max().item<double>(), 2e-5) << name_of(q) << scale;
    }
  }
}

TEST_P(FixedOrderHost, narrow_types_are_the_fp32_result_rounded_once) {
  for (const Dtype dtype : {Dtype::kFloat16, Dtype::kBFloat16}) {
    const Inputs narrow = random_inputs(problem_of(GetParam(), dtype), false);
    Inputs wide = narrow;
    wide.problem.dtype = Dtype::kFloat32;
    for (auto* t : {&wide.q, &wide.k, &wide.v, &wide.dout}) *t = t->to(at::kFloat);
    Outputs expected = run(wide);
    for (auto* t : {&expected.out, &expected.dq, &expected.dk, &expected.dv}) *t = t->to(scalar_type(dtype));
    expect_same(run(narrow), expected);
  }
}

TEST_P(FixedOrderHost, a_batch_element_alone_has_the_same_bits) {
  const Inputs in = random_inputs(problem_of(GetParam()), true);
  const Outputs whole = run(in);
  Inputs one = in;
  one.problem.batch = 1;
  for (auto* t : {&one.q, &one.k, &one.v, &one.dout, &one.dlse, &one.key_padding_mask}) *t = t->narrow(0, 1, 1);
  const auto part = [](const at::Tensor& t) { return t.narrow(0, 1, 1); };
  expect_same(run(one), {part(whole.out), part(whole.lse), part(whole.dq), part(whole.dk), part(whole.dv)});
}

TEST_P(FixedOrderHost, a_chunk_of_a_prefill_down_to_one_decoded_row_has_the_same_bits) {
  const Inputs in = random_inputs(problem_of(GetParam()), true);
  const Outputs whole = run(in);
  for (const auto& [begin, count] : {std::pair{0, 7}, {7, 5}, {12, 6}, {18, 1}}) {
    Inputs chunk = in;
    chunk.problem.seqlen_q = count;
    chunk.problem.seqlen_kv = in.problem.seqlen_kv - in.problem.seqlen_q + begin + count;
    for (auto* t : {&chunk.q, &chunk.dout, &chunk.dlse}) *t = t->narrow(2, begin, count);
    for (auto* t : {&chunk.k, &chunk.v}) *t = t->narrow(2, 0, chunk.problem.seqlen_kv);
    chunk.key_padding_mask = in.key_padding_mask.narrow(1, 0, chunk.problem.seqlen_kv);
    const Outputs part = run(chunk);
    EXPECT_TRUE(same_bits(part.out, whole.out.narrow(2, begin, count)));
    EXPECT_TRUE(same_bits(part.lse, whole.lse.narrow(2, begin, count)));
    EXPECT_TRUE(same_bits(part.dq, whole.dq.narrow(2, begin, count)));
  }
}

TEST_P(FixedOrderHost, what_padded_keys_hold_changes_no_bit_and_their_gradient_is_zero) {
  const Inputs in = random_inputs(problem_of(GetParam()), true);
  const Outputs whole = run(in);
  const at::Tensor padded = in.key_padding_mask.logical_not().unsqueeze(1).unsqueeze(-1);
  for (const double poison : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 1e30}) {
    Inputs poisoned = in;
    poisoned.k = in.k.masked_fill(padded, poison);
    poisoned.v = in.v.masked_fill(padded, poison);
    expect_same(run(poisoned), whole);
  }
  EXPECT_EQ(whole.dk.masked_select(padded).abs().max().item<float>(), 0.0F);
  EXPECT_EQ(whole.dv.masked_select(padded).abs().max().item<float>(), 0.0F);
}

TEST_P(FixedOrderHost, strides_change_no_bit) {
  const Inputs in = random_inputs(problem_of(GetParam()), true);
  Inputs strided = in;
  for (auto* t : {&strided.q, &strided.k, &strided.v, &strided.dout}) *t = t->transpose(1, 3).contiguous().transpose(1, 3);
  strided.dlse = in.dlse.transpose(0, 2).contiguous().transpose(0, 2);
  strided.key_padding_mask = in.key_padding_mask.t().contiguous().t();
  expect_same(run(strided), run(in));
}

TEST_P(FixedOrderHost, grouped_heads_equal_repeated_heads) {
  const Inputs in = random_inputs(problem_of(GetParam()), true);
  Inputs repeated = in;
  repeated.problem.num_heads_kv = in.problem.num_heads_q;
  for (auto* t : {&repeated.k, &repeated.v}) *t = t->repeat_interleave(in.problem.group(), 1);
  const Outputs grouped = run(in), separate = run(repeated);
  EXPECT_TRUE(same_bits(grouped.out, separate.out));
  EXPECT_TRUE(same_bits(grouped.lse, separate.lse));
  EXPECT_TRUE(same_bits(grouped.dq, separate.dq));
}

TEST_P(FixedOrderHost, a_forward_run_alone_has_the_same_bits) {
  const Inputs in = random_inputs(problem_of(GetParam()), true);
  expect_same(run(in.forward_only()), run(in));
}

TEST_P(FixedOrderHost, a_query_before_every_key_gets_nothing) {
  AttentionProblem p = problem_of(GetParam());
  p.seqlen_kv = 5;  // queries 0 … 13 of 19 stand before key 0
  const Inputs in = random_inputs(p, false);
  const Outputs o = run(in);
  const float empty = GetParam() == Op::kSoftmax ? -std::numeric_limits<float>::infinity() : 1.0F;
  EXPECT_TRUE((o.lse.narrow(2, 0, 14) == empty).all().item<bool>());
  EXPECT_TRUE((o.out.narrow(2, 0, 14) == 0).all().item<bool>());
  EXPECT_TRUE((o.dq.narrow(2, 0, 14) == 0).all().item<bool>());
  EXPECT_TRUE(o.dk.isfinite().all().item<bool>());
  EXPECT_TRUE(o.dv.isfinite().all().item<bool>());
}

INSTANTIATE_TEST_SUITE_P(Operators, FixedOrderHost, testing::Values(Op::kSoftmax, Op::kStickBreaking),
                         [](const auto& info) { return std::string(variant_prefix(info.param)); });

}  // namespace
}  // namespace attest::fixed_order
