#include "oracles/sequences.h"

#include <gtest/gtest.h>

#include <cmath>

#include "harness/error.h"
#include "oracles/test_inputs.h"

namespace attest {
namespace {

const Oracle& certified(Op op) { return *Registry<Oracle>::instance().find(std::string(name_of(op)) + ".certified"); }

AttentionProblem problem(Op op, int64_t batch, int64_t seqlen_q, int64_t seqlen_kv) {
  return {.op = op, .batch = batch, .num_heads_q = 4, .num_heads_kv = 2, .seqlen_q = seqlen_q, .seqlen_kv = seqlen_kv,
          .head_dim = 8, .head_dim_v = 16, .causal = true, .softmax_scale = 0.3F};
}

/// Packed [T, H, D] (dlse [Hq, T]), as one batch element [1, H, T, D] of views.
Inputs packed_as_batch(const Inputs& batch, const std::vector<Sequence>& sequences) {
  Inputs in = batch;
  for (at::Tensor* t : {&in.q, &in.k, &in.v, &in.dout}) *t = (*t)[0].transpose(0, 1).contiguous().transpose(0, 1).unsqueeze(0);
  in.kind = Sequences::kPacked;
  in.sequences = sequences;
  return in;
}

Inputs cache(Inputs in, const std::vector<Sequence>& sequences) {
  in.kind = Sequences::kLengths;
  in.sequences = sequences;
  return in;
}

class InSequences : public ::testing::TestWithParam<Op> {};

TEST_P(InSequences, packed_ones_have_the_reference_of_each_alone) {
  const std::vector<int64_t> q_ends = {0, 5, 5, 6, 20}, kv_ends = {0, 9, 12, 12, 37};  // one without queries, one without keys
  const Inputs batch = normal_inputs(problem(GetParam(), 1, 20, 37), 3);
  const Inputs in = packed_as_batch(batch, packed(q_ends, kv_ends));
  const Reference whole = certified(GetParam()).evaluate(in, 1);
  Inputs last = batch;
  last.problem.seqlen_q = 14;
  last.problem.seqlen_kv = 25;
  for (at::Tensor* t : {&last.q, &last.dout, &last.dlse}) *t = t->narrow(2, 6, 14);
  for (at::Tensor* t : {&last.k, &last.v}) *t = t->narrow(2, 12, 25);
  const Reference alone = certified(GetParam()).evaluate(last, 1);
  for (const Quantity q : EnumSet<Quantity>::all().members()) {
    const bool keys = sums_over_queries(q);
    const auto part = [&](const at::Tensor& t, int64_t lead = 0) { return t.narrow(lead + 2, keys ? 12 : 6, keys ? 25 : 14); };
    EXPECT_TRUE(part(whole[q].value).equal(alone[q].value)) << name_of(q);
    EXPECT_TRUE(part(whole[q].low).equal(alone[q].low)) << name_of(q);
    EXPECT_TRUE(part(whole[q].radius).equal(alone[q].radius)) << name_of(q);
    EXPECT_TRUE(part(whole[q].terms, 1).equal(alone[q].terms)) << name_of(q);
  }
  const at::Tensor unseeing = whole[Quantity::kLse].value.narrow(2, 5, 1);  // the query of the sequence without keys
  EXPECT_TRUE(unseeing.eq(GetParam() == Op::kSoftmax ? -INFINITY : 1).all().item<bool>());
  EXPECT_TRUE(whole[Quantity::kDk].value.narrow(2, 9, 3).eq(0).all().item<bool>());
}

TEST_P(InSequences, the_tail_of_a_cache_is_never_read_and_positions_follow_the_length) {
  Inputs in = normal_inputs(problem(GetParam(), 2, 3, 40), 4);
  in.k.narrow(0, 0, 1).narrow(2, 17, 23).fill_(NAN);
  in.v.narrow(0, 0, 1).narrow(2, 17, 23).fill_(NAN);
  in.q.narrow(0, 1, 1).narrow(2, 1, 2).fill_(NAN);
  const Reference whole = certified(GetParam()).evaluate(cache(in, with_lengths({3, 1}, {17, 40})), 0);
  for (const Quantity q : {Quantity::kOut, Quantity::kDq, Quantity::kDk, Quantity::kDv})
    EXPECT_TRUE(whole[q].value.isfinite().all().item<bool>()) << name_of(q);
  EXPECT_TRUE(whole[Quantity::kOut].value[1].narrow(1, 1, 2).eq(0).all().item<bool>());
  EXPECT_TRUE(whole[Quantity::kDv].value[0].narrow(1, 17, 23).eq(0).all().item<bool>());
  EXPECT_TRUE(whole[Quantity::kDv].value[0].narrow(1, 0, 17).ne(0).any(-1).all().item<bool>() || GetParam() == Op::kStickBreaking);
}

TEST_P(InSequences, one_that_leaves_its_tensor_is_refused) {
  const Inputs in = normal_inputs(problem(GetParam(), 2, 3, 40), 4);
  for (const auto& lengths : {with_lengths({4, 1}, {17, 40}), with_lengths({3, 1}, {41, 40}), with_lengths({3, 1}, {-1, 40}),
                              with_lengths({3, 1, 1}, {1, 1, 1})}) {
    EXPECT_THROW(certified(GetParam()).evaluate(cache(in, lengths), 0), UsageError);
    EXPECT_THROW(reference_of(cache(in, lengths)), UsageError);
  }
}

TEST_P(InSequences, both_oracles_agree_on_packed_ones) {
  const Inputs batch = normal_inputs(problem(GetParam(), 1, 7, 9), 5);
  const Inputs in = packed_as_batch(batch, packed({0, 2, 2, 6}, {0, 4, 5, 9}));  // one without queries; query 6 is in none
  const Reference definition = reference_of(in), other = certified(GetParam()).evaluate(in, 1);
  for (const Quantity q : EnumSet<Quantity>::all().members()) {
    const at::Tensor distance = (definition[q].value - other[q].value).abs().nan_to_num();
    EXPECT_TRUE(distance.le(definition[q].radius + other[q].radius + other[q].low.abs()).all().item<bool>()) << name_of(q);
  }
  EXPECT_TRUE(definition[Quantity::kOut].value.narrow(2, 6, 1).eq(0).all().item<bool>());
}

INSTANTIATE_TEST_SUITE_P(Operators, InSequences, ::testing::Values(Op::kSoftmax, Op::kStickBreaking),
                         [](const auto& info) { return std::string(name_of(info.param)); });

}  // namespace
}  // namespace attest
