// On a GPU of compute capability 9.0: softmax.cuda.fused called without the harness's campaign, at lengths that campaigns do not
// reach, from a KV cache with room for more, from a graph, on two streams. Skipped where there is none.
#include <gtest/gtest.h>

#include <limits>

#include "harness/case.h"
#include "harness/compare.h"
#include "harness/oracle.h"
#include "harness/reference.h"
#include "harness/slice.h"
#include "kernels/device/attention_tensors.h"
#include "kernels/device/gpu_test.h"
#include "kernels/device/random_inputs.h"
#include "kernels/hopper/fused.h"

namespace attest::fused {
namespace {

using fixed_order::same_bits;

const KernelVariant& variant() { return *Registry<KernelVariant>::instance().find("softmax.cuda.fused"); }

/// A forward ready to be launched any number of times. What it may not read, or not before it has written it, holds NaN.
class Forward {
 public:
  explicit Forward(const Inputs& on_gpu, cudaStream_t stream = nullptr)
      : in_(on_gpu), out_(fixed_order::fresh_outputs(in_, Device::kCuda)), p_(fixed_order::params_of(in_, out_)) {
    p_.stream = stream;
    workspace_ = at::full({workspace_bytes(p_) / 4}, std::numeric_limits<float>::quiet_NaN(), in_.q.options().dtype(at::kFloat));
    if (needs_cleared_workspace(p_)) clear_workspace(p_, workspace_.data_ptr());
    wait_for_gpu();
  }
  void launch() const { forward(p_, nullptr, workspace_.data_ptr()); }
  Outputs outputs() const {
    wait_for_gpu();
    return out_.cpu();
  }
  Outputs run() const { return launch(), outputs(); }
  void forget() const { out_.out.fill_(7), out_.lse.fill_(7), wait_for_gpu(); }

 private:
  Inputs in_;
  Outputs out_;
  AttentionParams p_;
  at::Tensor workspace_;
};

Outputs run(const Inputs& in) { return Forward(in).run(); }

void expect_rows(const Outputs& actual, const Outputs& of_all, int64_t begin, const std::string& what) {
  const int64_t count = actual.out.size(2);
  EXPECT_TRUE(same_bits(actual.out, of_all.out.narrow(2, begin, count))) << what;
  EXPECT_TRUE(same_bits(actual.lse, of_all.lse.narrow(2, begin, count))) << what;
}

class FusedOnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = why_no_gpu_of(9)) GTEST_SKIP() << *why;
  }
  static Inputs inputs(AttentionProblem p, uint64_t seed = 1) {
    p.causal = true;
    p.head_dim_v = p.head_dim;
    p.softmax_scale = default_softmax_scale(p.head_dim);
    return fixed_order::random_inputs(p, false, seed).forward_only().to(Device::kCuda);
  }
};

AttentionProblem self_attention(int64_t heads_q, int64_t heads_kv, int64_t length, int64_t head_dim, Dtype dtype = Dtype::kBFloat16) {
  return {.dtype = dtype, .num_heads_q = heads_q, .num_heads_kv = heads_kv, .seqlen_q = length, .seqlen_kv = length,
          .head_dim = head_dim};
}

TEST_F(FusedOnGpu, decoded_queries_and_chunks_of_several_segments_have_the_bits_of_their_rows_of_the_prefill) {
  for (const AttentionProblem& p : {self_attention(8, 2, 2304, 128), self_attention(3, 3, 1500, 64, Dtype::kFloat16),
                                    self_attention(16, 1, 1300, 72), self_attention(36, 4, 1100, 128)}) {
    const Inputs in = inputs(p);
    const Outputs all = run(in);
    for (const int64_t count : {1, 2, 5, 16, 64, 100, 128, 300})
      for (const int64_t end : {int64_t{300}, int64_t{511}, int64_t{512}, int64_t{513}, int64_t{1025}, p.seqlen_q})
        expect_rows(run(slice_queries(in, end - count, count)), all, end - count,
                    to_string(p) + " queries " + std::to_string(count) + " up to " + std::to_string(end));
  }
}

TEST_F(FusedOnGpu, nothing_past_the_length_of_a_cache_is_read) {
  const Inputs in = inputs(self_attention(8, 2, 1100, 128));
  for (const int64_t count : {1, 16, 100, 300}) {
    const Inputs chunk = slice_queries(in, 777, count);
    const Outputs expected = run(contiguous(chunk));
    for (const int64_t room : {1, 51, 1000}) expect_rows(run(in_cache(chunk, chunk.problem.seqlen_kv + room)), expected, 0, "");
  }
}

TEST_F(FusedOnGpu, a_captured_graph_replays_the_bits_of_a_launch_and_two_streams_do_not_mix) {
  for (const int64_t count : {1, 100, 1100}) {
    const Inputs in = slice_queries(inputs(self_attention(8, 2, 1100, 128)), 1100 - count, count);
    const Outputs expected = run(in);
    const Stream one, other;
    const Forward first(in, one.get()), second(in, other.get());
    const CapturedGraph graph(one.get(), [&] { first.launch(); });
    for (int round = 0; round < 3; ++round) {
      first.forget(), second.forget();
      for (int i = 0; i < 10; ++i) graph.replay(), second.launch();
      expect_rows(first.outputs(), expected, 0, "graph");
      expect_rows(second.outputs(), expected, 0, "stream");
    }
  }
}

/// `row`: one query on the CPU.
Reference reference_of(const Inputs& row) {
  for (const Oracle* oracle : Registry<Oracle>::instance().all())
    if (!oracle->domain.excludes(Case{.problem = row.problem})) return oracle->evaluate(row, 0);
  throw std::runtime_error("no oracle affords a row of " + std::to_string(row.problem.seqlen_kv) + " keys");
}

TEST_F(FusedOnGpu, sampled_rows_of_65536_keys_agree_with_the_oracle_in_prefill_chunk_and_decode) {
  const Inputs in = inputs(self_attention(4, 1, 65536, 128));
  const Outputs all = run(in);
  for (const int64_t row : {0, 511, 512, 8191, 40000, 65535}) {
    const Inputs alone = slice_queries(in, row, 1);
    expect_rows(run(alone), all, row, "decode " + std::to_string(row));
    const int64_t begin = std::max<int64_t>(0, row - 127);
    expect_rows(run(slice_queries(in, begin, row + 1 - begin)), all, begin, "chunk " + std::to_string(row));
    const Reference reference = reference_of(contiguous(alone).to(Device::kCpu));
    const ErrorUnits units = error_units(variant().contract.arithmetic, alone.problem);
    for (const Quantity q : {Quantity::kOut, Quantity::kLse}) {
      const Comparison c = compare(all[q].narrow(2, row, 1), reference[q], variant().contract.of(q), units);
      EXPECT_EQ(c.outcome, Comparison::Outcome::kPass) << name_of(q) << " of row " << row << ": " << c.headroom << " of the bound";
    }
  }
}

}  // namespace
}  // namespace attest::fused
