// The code of the CUDA kernels, run on the host thread by thread, has the bits of the host twins.
#include <gtest/gtest.h>

#include <limits>

#include "kernels/device/attention_products.h"
#include "kernels/device/attention_tensors.h"
#include "kernels/device/random_inputs.h"
#include "kernels/softmax/fixed_order_rows.h"
#include "kernels/stickbreaking/fixed_order_rows.h"

namespace attest::fixed_order {
namespace {

template <class Product>
void run_product(const Product& product) {
  HostBlock<Sums> block;
  ProductTile tile;
  for (int64_t index = 0; index < count_tiles(product); ++index) run_tile(block, product, tile, index);
}

void run_rows(const AttentionParams& p, Op op, bool backward) {
  HostBlock<NoState> block;
  SoftmaxLeaves leaves;
  SticksTile sticks;
  const int64_t blocks = op == Op::kSoftmax ? p.num_rows() : stick_blocks(p);
  for (int64_t i = 0; i < blocks; ++i) {
    if (op == Op::kSoftmax) backward ? softmax_row_backward(block, p, leaves, i) : softmax_row(block, p, leaves, i);
    if (op == Op::kStickBreaking) backward ? stick_rows_backward(block, p, sticks, i) : stick_rows(block, p, sticks, i);
  }
}

/// The sequence of launches of kernels/*/fixed_order.cu. A workspace filled with NaN shows a read of what nobody wrote.
template <class T>
Outputs run_device_code(const Inputs& in) {
  const Outputs out = fresh_outputs(in, Device::kCpu);
  AttentionParams p = params_of(in, out);
  const auto size = static_cast<size_t>(p.num_rows() * p.seqlen_kv);
  std::vector<float> workspace(3 * size, std::numeric_limits<float>::quiet_NaN());
  p.weights = workspace.data();
  p.dlogits = p.weights + size;
  p.logits = in.problem.op == Op::kSoftmax ? p.weights : p.dlogits + size;
  run_product(logits_product<T>(p));
  run_rows(p, in.problem.op, false);
  run_product(out_product<T>(p));
  if (!p.backward()) return out;
  run_product(dweights_product<T>(p));
  run_rows(p, in.problem.op, true);
  run_product(dq_product<T>(p));
  run_product(dk_product<T>(p));
  run_product(dv_product<T>(p));
  return out;
}

void expect_twin(const Inputs& in) {
  const Outputs twin = run_variant(std::string(variant_prefix(in.problem.op)) + ".cpu.fixed_order", in);
  const Outputs device =
      in.problem.dtype == Dtype::kFloat16 ? run_device_code<Float16>(in) : run_device_code<BFloat16>(in);
  for (const Quantity q : EnumSet<Quantity>::all().members())
    EXPECT_TRUE(!twin[q].defined() || same_bits(device[q], twin[q])) << name_of(q) << " of " << to_string(in.problem);
}

class FixedOrderDevice : public testing::TestWithParam<Op> {};

TEST_P(FixedOrderDevice, has_the_bits_of_the_host_twin) {
  const bool sticks = GetParam() == Op::kStickBreaking;
  for (const Dtype dtype : {Dtype::kFloat16, Dtype::kBFloat16}) {
    for (const bool flag : {false, true}) {
      AttentionProblem p{.op = GetParam(), .dtype = dtype, .batch = 2, .num_heads_q = 4, .num_heads_kv = 2, .seqlen_q = 70,
                         .seqlen_kv = 131, .head_dim = 24, .head_dim_v = 67, .causal = sticks || flag,
                         .attend_current = sticks && flag, .softmax_scale = flag ? 0.3F : -0.2F};
      expect_twin(random_inputs(p, flag));
      p.seqlen_kv = 41;  // some queries stand before every key
      expect_twin(random_inputs(p, true));
      expect_twin(random_inputs(p, true).forward_only());
    }
  }
}

TEST_P(FixedOrderDevice, decodes_long_rows_with_the_bits_of_the_host_twin) {
  AttentionProblem p{.op = GetParam(), .num_heads_q = 3, .seqlen_kv = 1030, .head_dim = 33, .head_dim_v = 3, .causal = true,
                     .attend_current = GetParam() == Op::kStickBreaking, .softmax_scale = 0.15F};
  expect_twin(random_inputs(p, true));
  p.softmax_scale = 0.0F;  // every logit ties
  expect_twin(random_inputs(p, true));
}

TEST_P(FixedOrderDevice, never_reads_what_hidden_keys_hold) {
  AttentionProblem p{.op = GetParam(), .batch = 2, .seqlen_q = 9, .seqlen_kv = 80, .head_dim = 8, .head_dim_v = 8, .causal = true,
                     .softmax_scale = 5.0F};
  Inputs in = random_inputs(p, true);
  const at::Tensor padded = in.key_padding_mask.logical_not().unsqueeze(1).unsqueeze(-1);
  for (auto* t : {&in.k, &in.v}) *t = t->masked_fill(padded, std::numeric_limits<double>::quiet_NaN());
  expect_twin(in);
  EXPECT_TRUE(run_device_code<BFloat16>(in).dq.isfinite().all().item<bool>());
}

INSTANTIATE_TEST_SUITE_P(Operators, FixedOrderDevice, testing::Values(Op::kSoftmax, Op::kStickBreaking),
                         [](const auto& info) { return std::string(variant_prefix(info.param)); });

}  // namespace
}  // namespace attest::fixed_order
