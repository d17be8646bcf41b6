// On a GPU, neither graphs nor streams nor huge batches change a bit of the fixed_order kernels. Skipped where there is none.
#ifdef ATTEST_HAS_CUDA
#include <gtest/gtest.h>

#include "kernels/device/attention_tensors.h"
#include "kernels/device/gpu_test.h"
#include "kernels/device/random_inputs.h"
#include "kernels/softmax/fixed_order.h"
#include "kernels/stickbreaking/fixed_order.h"

namespace attest::fixed_order {
namespace {

/// Inputs, outputs and workspace on the GPU, ready to be launched any number of times.
class Prepared {
 public:
  Prepared(const Inputs& cpu, const Stream& stream) : in_(cpu.to(Device::kCuda)), out_(fresh_outputs(in_, Device::kCuda)) {
    p_ = params_of(in_, out_);
    workspace_ = at::empty({3, p_.num_rows(), p_.seqlen_kv}, in_.q.options().dtype(at::kFloat));
    const int64_t size = p_.num_rows() * p_.seqlen_kv;
    p_.weights = workspace_.data_ptr<float>();
    p_.dlogits = p_.weights + size;
    p_.logits = in_.problem.op == Op::kSoftmax ? p_.weights : p_.dlogits + size;
    p_.stream = stream.get();
    wait_for_gpu();
  }
  void launch() const { in_.problem.op == Op::kSoftmax ? launch_softmax(p_) : launch_stickbreaking(p_); }
  void forget() {
    for (const Quantity q : EnumSet<Quantity>::all().members()) out_[q].fill_(7);
    wait_for_gpu();
  }
  void expect_bits(const Outputs& expected) const {
    const Outputs actual = out_.cpu();
    for (const Quantity q : EnumSet<Quantity>::all().members()) EXPECT_TRUE(same_bits(actual[q], expected[q])) << name_of(q);
  }

 private:
  Inputs in_;
  Outputs out_;
  at::Tensor workspace_;
  AttentionParams p_;
};

class OnGpu : public ::testing::TestWithParam<Op> {
 protected:
  void SetUp() override {
    if (const auto why = why_no_gpu_of()) GTEST_SKIP() << *why;
  }
  Inputs inputs(uint64_t seed) const {
    return random_inputs({.op = GetParam(), .batch = 2, .num_heads_q = 4, .num_heads_kv = 2, .seqlen_q = 70, .seqlen_kv = 300,
                          .head_dim = 64, .head_dim_v = 64, .causal = true, .softmax_scale = 0.125F}, true, seed);
  }
  Outputs twin(const Inputs& in) const { return run_variant(std::string(variant_prefix(GetParam())) + ".cpu.fixed_order", in); }
};

TEST_P(OnGpu, a_captured_graph_replays_the_bits_of_a_launch) {
  const Stream stream;
  Prepared work(inputs(1), stream);
  const CapturedGraph graph(stream.get(), [&] { work.launch(); });
  const Outputs expected = twin(inputs(1));
  for (int replay = 0; replay < 3; ++replay) {
    work.forget();
    graph.replay();
    wait_for_gpu();
    work.expect_bits(expected);
  }
}

TEST_P(OnGpu, two_streams_at_once_give_each_its_own_bits) {
  const Stream first, second;
  Prepared a(inputs(2), first), b(inputs(3), second);
  const Outputs of_a = twin(inputs(2)), of_b = twin(inputs(3));
  for (int round = 0; round < 5; ++round) {
    a.forget();
    b.forget();
    for (int i = 0; i < 20; ++i) a.launch(), b.launch();
    wait_for_gpu();
    a.expect_bits(of_a);
    b.expect_bits(of_b);
  }
}

TEST_P(OnGpu, more_than_65535_heads_in_all_are_computed) {
  const Inputs in = random_inputs({.op = GetParam(), .batch = 4100, .num_heads_q = 17, .num_heads_kv = 17, .seqlen_q = 2,
                                   .seqlen_kv = 3, .head_dim = 4, .head_dim_v = 4, .causal = true}, false);
  const Stream stream;
  Prepared work(in, stream);
  work.launch();
  wait_for_gpu();
  work.expect_bits(twin(in));
}

INSTANTIATE_TEST_SUITE_P(Operators, OnGpu, testing::Values(Op::kSoftmax, Op::kStickBreaking),
                         [](const auto& info) { return std::string(variant_prefix(info.param)); });

}  // namespace
}  // namespace attest::fixed_order
#endif
