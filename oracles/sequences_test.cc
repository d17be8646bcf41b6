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

class Sequences : public ::testing::TestWithParam<Op> {};

TEST_P(Sequences, packed_ones_have_the_reference_of_each_alone) {
  const std::vector<int64_t> q_ends = {0, 5, 5, 6, 20}, kv_ends = {0, 9, 12, 12, 37};  // one without queries, one without keys
  const Inputs batch = normal_inputs(problem(GetParam(), 1, 20, 37), 3);
  const auto packed_tensor = [](const at::Tensor& t) { return t[0].transpose(0, 1).contiguous(); };
  const Inputs in = packed_as_batch(batch.problem, packed_tensor(batch.q), packed_tensor(batch.k), packed_tensor(batch.v),
                                    packed_tensor(batch.dout), batch.dlse[0]);
  const Reference whole = evaluate_sequences(certified(GetParam()), in, packed(q_ends, kv_ends), 1);
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

TEST_P(Sequences, the_tail_of_a_cache_is_never_read_and_positions_follow_the_length) {
  Inputs in = normal_inputs(problem(GetParam(), 2, 3, 40), 4);
  in.k.narrow(0, 0, 1).narrow(2, 17, 23).fill_(NAN);
  in.v.narrow(0, 0, 1).narrow(2, 17, 23).fill_(NAN);
  in.q.narrow(0, 1, 1).narrow(2, 1, 2).fill_(NAN);
  const Reference whole = evaluate_sequences(certified(GetParam()), in, with_lengths({3, 1}, {17, 40}), 0);
  for (const Quantity q : {Quantity::kOut, Quantity::kDq, Quantity::kDk, Quantity::kDv})
    EXPECT_TRUE(whole[q].value.isfinite().all().item<bool>()) << name_of(q);
  EXPECT_TRUE(whole[Quantity::kOut].value[1].narrow(1, 1, 2).eq(0).all().item<bool>());
  EXPECT_TRUE(whole[Quantity::kDv].value[0].narrow(1, 17, 23).eq(0).all().item<bool>());
  EXPECT_TRUE(whole[Quantity::kDv].value[0].narrow(1, 0, 17).ne(0).any(-1).all().item<bool>() || GetParam() == Op::kStickBreaking);
}

TEST_P(Sequences, one_that_leaves_its_tensor_is_refused) {
  const Inputs in = normal_inputs(problem(GetParam(), 2, 3, 40), 4);
  for (const auto& lengths : {with_lengths({4, 1}, {17, 40}), with_lengths({3, 1}, {41, 40}), with_lengths({3, 1}, {-1, 40}),
                              with_lengths({3, 1, 1}, {1, 1, 1})})
    EXPECT_THROW(evaluate_sequences(certified(GetParam()), in, lengths, 0), UsageError);
}

INSTANTIATE_TEST_SUITE_P(Operators, Sequences, ::testing::Values(Op::kSoftmax, Op::kStickBreaking),
                         [](const auto& info) { return std::string(name_of(info.param)); });

}  // namespace
}  // namespace attest
