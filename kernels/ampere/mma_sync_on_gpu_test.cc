// On a GPU of compute capability 8.0 or later: the portable kernels at sizes that campaigns do not reach, against the kernels for
// Hopper bit for bit and against the oracle, from graphs, on two streams, with more heads than a grid has rows. Skipped elsewhere.
#ifdef ATTEST_HAS_CUDA
#include <gtest/gtest.h>

#include "harness/case.h"
#include "harness/compare.h"
#include "harness/oracle.h"
#include "harness/reference.h"
#include "harness/slice.h"
#include "kernels/ampere/softmax.h"
#include "kernels/ampere/stick.h"
#include "kernels/device/attention_tensors.h"
#include "kernels/device/gpu_test.h"
#include "kernels/device/random_inputs.h"

namespace attest::portable {
namespace {

using fixed_order::AttentionParams;
using fixed_order::random_inputs;
using fixed_order::same_bits;

AttentionProblem problem(int64_t batch, int64_t heads, int64_t heads_kv, int64_t seqlen_q, int64_t seqlen_kv, int64_t head_dim,
                         int64_t head_dim_v, Dtype dtype = Dtype::kBFloat16) {
  return {.dtype = dtype, .batch = batch, .num_heads_q = heads, .num_heads_kv = heads_kv, .seqlen_q = seqlen_q, .seqlen_kv = seqlen_kv,
          .head_dim = head_dim, .head_dim_v = head_dim_v, .causal = true, .softmax_scale = default_softmax_scale(head_dim)};
}

/// Forward and backward on a stream of its own, ready to be launched any number of times.
class Work {
 public:
  explicit Work(const Inputs& on_gpu) : in_(on_gpu), out_(fixed_order::fresh_outputs(in_, Device::kCuda)), p_(fixed_order::params_of(in_, out_)) {
    p_.stream = stream_.get();
    const auto bytes = [&](int64_t n) { return at::empty({n}, in_.q.options().dtype(at::kByte)); };
    workspace_ = bytes(soft() ? softmax::workspace_bytes(p_) : stick::workspace_bytes(p_));
    saved_ = bytes(soft() ? p_.num_rows() * int64_t{sizeof(int32_t)} : stick::saved_bytes(p_));
    wait_for_gpu();
  }
  cudaStream_t stream() const { return stream_.get(); }
  void launch() const {
    if (soft()) {
      softmax::forward(p_, static_cast<int32_t*>(saved_.data_ptr()), workspace_.data_ptr());
      softmax::backward(p_, static_cast<const int32_t*>(saved_.data_ptr()), workspace_.data_ptr());
    } else {
      stick::forward(p_, saved_.data_ptr(), workspace_.data_ptr());
      stick::backward(p_, saved_.data_ptr(), workspace_.data_ptr());
    }
  }
  void forget() const {
    for (const Quantity q : EnumSet<Quantity>::all().members()) out_[q].fill_(7);
    wait_for_gpu();
  }
  void expect_bits(const Outputs& expected, const char* when) const {
    wait_for_gpu();
    for (const Quantity q : EnumSet<Quantity>::all().members())
      EXPECT_TRUE(same_bits(out_[q].cpu(), expected[q])) << name_of(q) << " " << when;
  }

 private:
  bool soft() const { return in_.problem.op == Op::kSoftmax; }
  Inputs in_;
  Outputs out_;
  Stream stream_;
  AttentionParams p_;
  at::Tensor workspace_, saved_;
};

class MmaSyncOnGpu : public ::testing::TestWithParam<Op> {
 protected:
  void SetUp() override {
    if (const auto why = why_no_gpu_of()) GTEST_SKIP() << *why;
  }
  static std::string name(const char* what) { return std::string(fixed_order::variant_prefix(GetParam())) + ".cuda." + what; }
  static Outputs run(const char* what, const Inputs& on_gpu) { return fixed_order::run_variant(name(what), on_gpu).cpu(); }
  static Inputs inputs(AttentionProblem p, bool padding = false, uint64_t seed = 1) {
    p.op = GetParam();
    return random_inputs(p, padding, seed).to(Device::kCuda);
  }
  static void expect_twins(const Inputs& in) {
    const Outputs ours = run("mma_sync", in), theirs = run("fused", in);
    for (const Quantity q : EnumSet<Quantity>::all().members())
      EXPECT_TRUE(same_bits(ours[q], theirs[q])) << name_of(q) << " of " << to_string(in.problem);
  }
};

TEST_P(MmaSyncOnGpu, its_bits_are_those_of_the_kernels_for_hopper) {
  if (const auto why = why_no_gpu_of(9)) GTEST_SKIP() << *why;
  for (const bool padding : {false, true})
    for (const AttentionProblem& p : {problem(2, 4, 2, 1500, 1500, 128, 128), problem(1, 4, 1, 700, 1600, 64, 64, Dtype::kFloat16),
                                      problem(1, 2, 2, 900, 2100, 72, 72), problem(2, 3, 3, 333, 200, 128, 128, Dtype::kFloat16)}) {
      expect_twins(inputs(p, padding));
      AttentionProblem other = p;
      other.softmax_scale = -0.3F;
      other.causal = GetParam() == Op::kStickBreaking;
      other.attend_current = GetParam() == Op::kStickBreaking;
      expect_twins(inputs(other, padding));
    }
}

TEST_P(MmaSyncOnGpu, a_captured_graph_replays_the_bits_of_a_launch) {
  const Inputs in = inputs(problem(2, 4, 2, 500, 700, 192, 72), true);
  const Outputs expected = run("mma_sync", in);
  const Work work(in);
  const CapturedGraph graph(work.stream(), [&] { work.launch(); });
  for (int replay = 0; replay < 3; ++replay) work.forget(), graph.replay(), work.expect_bits(expected, "of a replay");
}

TEST_P(MmaSyncOnGpu, two_streams_at_once_give_each_its_own_bits) {
  const Inputs one = inputs(problem(1, 4, 2, 500, 700, 128, 128), false, 2), other = inputs(problem(1, 4, 2, 500, 700, 128, 128), true, 3);
  const Outputs of_one = run("mma_sync", one), of_other = run("mma_sync", other);
  const Work a(one), b(other);
  for (int round = 0; round < 3; ++round) {
    a.forget(), b.forget();
    for (int i = 0; i < 10; ++i) a.launch(), b.launch();
    a.expect_bits(of_one, "beside another stream"), b.expect_bits(of_other, "beside another stream");
  }
}

TEST_P(MmaSyncOnGpu, more_than_65535_heads_in_all_are_computed) {
  const Inputs in = inputs(problem(4100, 17, 17, 2, 3, 4, 4));
  const Outputs all = run("mma_sync", in), last = run("mma_sync", slice_batch(in, 4099, 1));
  for (const Quantity q : EnumSet<Quantity>::all().members()) EXPECT_TRUE(same_bits(all[q].narrow(0, 4099, 1), last[q])) << name_of(q);
}

/// `row`: one query on the CPU.
Reference reference_of(const Inputs& row) {
  for (const Oracle* oracle : Registry<Oracle>::instance().all())
    if (!oracle->domain.excludes(Case{.problem = row.problem})) return oracle->evaluate(row, 0);
  throw std::runtime_error("no oracle affords a row of " + std::to_string(row.problem.seqlen_kv) + " keys");
}

TEST_P(MmaSyncOnGpu, sampled_rows_of_65536_keys_agree_with_the_oracle) {
  const Inputs in = inputs(problem(1, 2, 1, 65536, 65536, 192, 160)).forward_only();
  const Outputs all = run("mma_sync", in);
  const KernelVariant& variant = *Registry<KernelVariant>::instance().find(name("mma_sync"));
  for (const int64_t row : {0, 511, 512, 40000, 65535}) {
    const Inputs alone = slice_queries(in, row, 1);
    const Reference reference = reference_of(contiguous(alone).to(Device::kCpu));
    const ErrorUnits units = error_units(variant.contract.arithmetic, alone.problem);
    for (const Quantity q : {Quantity::kOut, Quantity::kLse}) {
      const Comparison c = compare(all[q].narrow(2, row, 1), reference[q], variant.contract.of(q), units);
      EXPECT_EQ(c.outcome, Comparison::Outcome::kPass) << name_of(q) << " of row " << row << ": " << c.headroom << " of the bound";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, MmaSyncOnGpu, testing::Values(Op::kSoftmax, Op::kStickBreaking),
                         [](const auto& info) { return std::string(fixed_order::variant_prefix(info.param)); });

}  // namespace
}  // namespace attest::portable
#endif
