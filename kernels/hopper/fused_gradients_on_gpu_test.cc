// On a GPU of compute capability 9.0, forward and backward of both fused kernels: neither graphs nor streams nor load from
// elsewhere change a bit, and the Torch operators run them. Skipped where there is none.
#include <gtest/gtest.h>

#include "kernels/device/attention_tensors.h"
#include "kernels/device/gpu_test.h"
#include "kernels/device/random_inputs.h"
#include "kernels/hopper/fused.h"
#include "kernels/hopper/stick.h"
#include "kernels/torch_call.h"
#include "kernels/torch_operators.h"

namespace attest {
namespace {

using fixed_order::AttentionParams;

/// A kernel's C++ API; `saved` is what its forward leaves for its backward.
struct Calls {
  Op op;
  int64_t (*saved_bytes)(const AttentionParams&);
  int64_t (*workspace_bytes)(const AttentionParams&);
  void (*clear_workspace)(const AttentionParams&, void*);
  void (*attend)(const AttentionParams&, void* saved, void* workspace);
  std::string variant() const { return std::string(fixed_order::variant_prefix(op)) + ".cuda.fused"; }
};
std::ostream& operator<<(std::ostream& out, const Calls& calls) { return out << calls.variant(); }  // names of tests

const Calls kSoftmax{
    Op::kSoftmax, [](const AttentionParams& p) { return p.num_rows() * int64_t{sizeof(int32_t)}; }, fused::workspace_bytes,
    fused::clear_workspace, [](const AttentionParams& p, void* saved, void* workspace) {
      fused::forward(p, static_cast<int32_t*>(saved), workspace);
      fused::backward(p, static_cast<int32_t*>(saved), workspace);
    }};
const Calls kSticks{
    Op::kStickBreaking, stick::saved_bytes, stick::workspace_bytes, stick::clear_workspace,
    [](const AttentionParams& p, void* saved, void* workspace) {
      stick::forward(p, saved, workspace);
      stick::backward(p, saved, workspace);
    }};

/// Forward and backward on a stream of its own, ready to be launched any number of times.
class Work {
 public:
  Work(const Calls& calls, const Inputs& on_gpu)
      : calls_(calls), in_(on_gpu), out_(fixed_order::fresh_outputs(in_, Device::kCuda)), p_(fixed_order::params_of(in_, out_)) {
    p_.stream = stream_.get();
    const auto bytes = [&](int64_t n) { return at::empty({n}, in_.q.options().dtype(at::kByte)); };
    saved_ = bytes(calls.saved_bytes(p_));
    workspace_ = bytes(calls.workspace_bytes(p_));
    calls.clear_workspace(p_, workspace_.data_ptr());
    wait_for_gpu();
  }
  cudaStream_t stream() const { return stream_.get(); }
  void launch() const { calls_.attend(p_, saved_.data_ptr(), workspace_.data_ptr()); }
  void forget() const {
    for (const Quantity q : EnumSet<Quantity>::all().members()) out_[q].fill_(7);
    wait_for_gpu();
  }
  void expect_bits(const Outputs& expected, const char* when) const {
    wait_for_gpu();
    for (const Quantity q : EnumSet<Quantity>::all().members())
      EXPECT_TRUE(fixed_order::same_bits(out_[q].cpu(), expected[q])) << name_of(q) << " " << when;
  }

 private:
  const Calls& calls_;
  Inputs in_;
  Outputs out_;
  Stream stream_;
  AttentionParams p_;
  at::Tensor saved_, workspace_;
};

class FusedGradientsOnGpu : public ::testing::TestWithParam<Calls> {
 protected:
  void SetUp() override {
    if (const auto why = why_no_gpu_of(9)) GTEST_SKIP() << *why;
  }
  static Inputs inputs(uint64_t seed) {
    const AttentionProblem p{.op = GetParam().op, .dtype = Dtype::kBFloat16, .batch = 2, .num_heads_q = 8, .num_heads_kv = 2,
                             .seqlen_q = 700, .seqlen_kv = 900, .head_dim = 128, .head_dim_v = 128, .causal = true,
                             .softmax_scale = 0.1F};
    return fixed_order::random_inputs(p, true, seed).to(Device::kCuda);
  }
  static Outputs of_variant(const Inputs& in) { return fixed_order::run_variant(GetParam().variant(), in).cpu(); }
};

TEST_P(FusedGradientsOnGpu, a_captured_graph_replays_the_bits_of_a_launch) {
  const Inputs in = inputs(1);
  const Outputs expected = of_variant(in);
  const Work work(GetParam(), in);
  const CapturedGraph graph(work.stream(), [&] { work.launch(); });
  for (int replay = 0; replay < 3; ++replay) {
    work.forget();
    graph.replay();
    work.expect_bits(expected, "of a replay");
  }
}

TEST_P(FusedGradientsOnGpu, two_streams_at_once_give_each_its_own_bits_however_often) {
  const Inputs one = inputs(2), other = inputs(3);
  const Outputs of_one = of_variant(one), of_other = of_variant(other);
  const Work a(GetParam(), one), b(GetParam(), other);
  for (int round = 0; round < 5; ++round) {
    a.forget(), b.forget();
    for (int i = 0; i < 20; ++i) a.launch(), b.launch();
    a.expect_bits(of_one, "beside another stream");
    b.expect_bits(of_other, "beside another stream");
  }
}

TEST_P(FusedGradientsOnGpu, the_torch_operator_runs_the_fused_kernel) {
  const bool soft = GetParam().op == Op::kSoftmax;
  const Inputs in = inputs(4);
  const KernelVariant variant = torch_operator_variant(soft ? kSoftmaxOperator : kStickBreakingOperator, Device::kCuda);
  const Outputs actual = variant.run(in).cpu(), expected = of_variant(in);
  for (const Quantity q : EnumSet<Quantity>::all().members())
    EXPECT_TRUE(fixed_order::same_bits(actual[q], expected[q])) << name_of(q);
}

INSTANTIATE_TEST_SUITE_P(Operators, FusedGradientsOnGpu, testing::Values(kSoftmax, kSticks),
                         [](const auto& info) { return std::string(fixed_order::variant_prefix(info.param.op)); });

}  // namespace
}  // namespace attest
