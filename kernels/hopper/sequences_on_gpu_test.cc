// On a GPU of compute capability 9.0: both fused kernels on packed sequences and on buffers with lengths, against each sequence alone,
// bit for bit, with NaN wherever no sequence lies. Skipped where there is none.
#include <gtest/gtest.h>

#include <limits>

#include "kernels/device/gpu_test.h"
#include "kernels/device/random_inputs.h"

namespace attest {
namespace {

using fixed_order::random_inputs;
using fixed_order::run_variant;
using fixed_order::same_bits;

AttentionProblem problem(Op op, int64_t batch, int64_t seqlen_q, int64_t seqlen_kv, int64_t head_dim, bool causal) {
  return {.op = op, .dtype = Dtype::kBFloat16, .batch = batch, .num_heads_q = 4, .num_heads_kv = 2, .seqlen_q = seqlen_q,
          .seqlen_kv = seqlen_kv, .head_dim = head_dim, .head_dim_v = head_dim, .causal = causal,
          .softmax_scale = default_softmax_scale(head_dim)};
}

/// NaN in rows that belong to no sequence.
void poison(Inputs& in) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  at::Tensor queries = at::ones({in.problem.batch, in.problem.seqlen_q}, at::kBool);
  at::Tensor keys = at::ones({in.problem.batch, in.problem.seqlen_kv}, at::kBool);
  for (const Sequence& s : in.sequences) {
    queries[s.batch].narrow(0, s.q_begin, s.n_q).fill_(false);
    keys[s.batch].narrow(0, s.kv_begin, s.n_kv).fill_(false);
  }
  for (at::Tensor* t : {&in.q, &in.dout}) t->masked_fill_(queries.unsqueeze(1).unsqueeze(-1), kNan);
  for (at::Tensor* t : {&in.k, &in.v}) t->masked_fill_(keys.unsqueeze(1).unsqueeze(-1), kNan);
  in.dlse.masked_fill_(queries.unsqueeze(1), kNan);
}

Inputs with(Inputs in, Sequences kind, std::vector<Sequence> sequences) {
  in.kind = kind;
  in.sequences = std::move(sequences);
  poison(in);
  return in;
}

Inputs packed_inputs(Op op, int64_t head_dim, bool causal) {  // of lengths 0, 1, and more queries than keys, too
  return with(random_inputs(problem(op, 1, 1003, 1102, head_dim, causal), false), Sequences::kPacked,
              packed({0, 0, 1, 131, 331, 331, 1001}, {0, 5, 6, 306, 400, 401, 1101}));
}
Inputs inputs_with_lengths(Op op, int64_t head_dim, bool causal) {
  return with(random_inputs(problem(op, 5, 200, 700, head_dim, causal), false), Sequences::kLengths,
              with_lengths({200, 1, 0, 70, 200}, {700, 513, 30, 0, 129}));
}

class SequencesOnGpu : public ::testing::TestWithParam<Op> {
 protected:
  void SetUp() override {
    if (const auto why = why_no_gpu_of(9)) GTEST_SKIP() << *why;
  }
  static void expect_separate_bits(const Inputs& in, const std::string& what) {
    const std::string name = std::string(fixed_order::variant_prefix(GetParam())) + ".cuda.fused";
    const auto run = [&](const Inputs& x) { return run_variant(name, x.to(Device::kCuda)).cpu(); };
    const Outputs actual = run(in), expected = run_each_sequence(in, run);
    for (const Quantity q : EnumSet<Quantity>::all().members()) {
      if (!expected[q].defined()) continue;
      EXPECT_TRUE(same_bits(actual[q], expected[q])) << name_of(q) << " of " << what;
    }
  }
};

TEST_P(SequencesOnGpu, sequences_among_others_and_nan_keep_the_bits_that_each_has_alone) {
  const bool sticks = GetParam() == Op::kStickBreaking;
  for (const int64_t head_dim : {64, 128})
    for (const bool causal : {true, false}) {
      if (sticks && !causal) continue;
      const std::string what = "D=" + std::to_string(head_dim) + (causal ? " causal" : "");
      for (const Inputs& in : {packed_inputs(GetParam(), head_dim, causal), inputs_with_lengths(GetParam(), head_dim, causal)}) {
        expect_separate_bits(in, what);
        expect_separate_bits(in.forward_only(), what + " forward only");
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Operators, SequencesOnGpu, testing::Values(Op::kSoftmax, Op::kStickBreaking),
                         [](const auto& info) { return std::string(fixed_order::variant_prefix(info.param)); });

}  // namespace
}  // namespace attest
