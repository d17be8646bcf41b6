// Both tiers against the 192-bit definition: values within the radii, the same error terms.
#include "oracles/certified/test_groups.h"
#include "oracles/certified/work.h"
#include "oracles/test_inputs.h"

namespace attest::certified {
namespace {

/// The tensors of a group, with one batch element and one KV head.
Inputs inputs_of(Group& group) {
  const GroupProblem& g = problem_of(group);
  const auto tensor = [](const std::vector<double>& x, std::vector<int64_t> shape) {
    return at::tensor(at::ArrayRef<double>(x), at::TensorOptions(at::kDouble)).view(shape).to(at::kFloat);
  };
  Inputs in;
  in.problem = {.op = g.op, .dtype = Dtype::kFloat32, .num_heads_q = g.group, .seqlen_q = g.n_q, .seqlen_kv = g.n_kv,
                .head_dim = g.head_dim, .head_dim_v = g.head_dim_v, .causal = g.causal, .attend_current = g.attend_current,
                .softmax_scale = g.softmax_scale};
  in.q = tensor(group.q, {1, g.group, g.n_q, g.head_dim});
  in.k = tensor(group.k, {1, 1, g.n_kv, g.head_dim});
  in.v = tensor(group.v, {1, 1, g.n_kv, g.head_dim_v});
  in.dout = tensor(group.dout, {1, g.group, g.n_q, g.head_dim_v});
  in.dlse = tensor(group.dlse, {1, g.group, g.n_q});
  if (group.keep.empty()) return in;
  in.key_padding_mask = at::ones({1, g.n_kv}, at::TensorOptions(at::kBool));
  for (int64_t j = 0; j < g.n_kv; ++j) in.key_padding_mask[0][j] = group.keep[j] != 0;
  return in;
}

/// |a − b| ≤ tolerance · b, for terms above what double flushes.
void expect_term(double actual, double expected, const std::string& where) {
  if (actual == expected || std::fmin(actual, expected) < 1e-230) return;
  EXPECT_NEAR(actual / expected, 1, 1e-6) << where;
}

void expect_agreement(const Answer& answer, const Reference& reference, const std::string& name) {
  for (const Quantity quantity : {Quantity::kOut, Quantity::kLse, Quantity::kDq, Quantity::kDk, Quantity::kDv}) {
    const auto n = static_cast<size_t>(quantity);
    const ReferenceQuantity& expected = reference[quantity];
    const auto* value = expected.value.const_data_ptr<double>();
    const auto* radius = expected.radius.const_data_ptr<double>();
    const auto* terms = expected.terms.const_data_ptr<double>();
    const auto* trivial = expected.trivial.const_data_ptr<double>();
    for (size_t i = 0; i < answer.hi[n].size(); ++i) {
      const std::string where = name + ", " + std::string(name_of(quantity)) + "[" + std::to_string(i) + "]";
      if (value[i] != answer.hi[n][i])  // infinities too
        EXPECT_LE(std::fabs((value[i] - answer.hi[n][i]) - answer.lo[n][i]), radius[i] + answer.radius[n][i]) << where;
      expect_term(answer.trivial[n][i], trivial[i], where + " trivial");
      for (size_t s = 0; s < enum_size<ErrorSource>(); ++s) {
        const size_t at = s * answer.hi[n].size() + i;
        expect_term(answer.terms[n][at], terms[at], where + " " + std::string(name_of(static_cast<ErrorSource>(s))));
      }
    }
  }
}

class Agreement : public testing::TestWithParam<std::tuple<Op, double, bool>> {};

TEST_P(Agreement, WithTheDefinitionInEveryRegime) {
  const auto [op, gain, pad] = GetParam();
  const GroupProblem shapes[] = {{.group = 2, .n_q = 5, .n_kv = 9, .head_dim = 3, .head_dim_v = 2},
                                 {.n_q = 20, .n_kv = 13, .head_dim = 8, .head_dim_v = 4},
                                 {.n_q = 3, .n_kv = 150, .head_dim = 4, .head_dim_v = 5}};
  for (GroupProblem shape : shapes)
    for (const int bits : {8, 24})
      for (const bool causal : {false, true}) {
        shape.op = op;
        shape.significand_bits = bits;
        shape.causal = causal || op == Op::kStickBreaking;
        shape.attend_current = !causal && op == Op::kStickBreaking;
        Group group = random_group(shape, gain, pad, 17 + static_cast<uint64_t>(bits) + causal);
        const Reference reference = reference_of(inputs_of(group));
        for (const Tier tier : {Tier::kDouble, Tier::kDoubleDouble}) {
          Answer answer(group.problem, true);
          evaluate_with(avx2_lanes(), tier, group.problem, answer.reference, 1);
          expect_agreement(answer, reference, tier == Tier::kDouble ? "double" : "double-double");
        }
      }
}

// Gains: logits all 0; ordinary; beyond fp32's exp; to 1e5; and so small that every product is subnormal in fp32.
INSTANTIATE_TEST_SUITE_P(Regimes, Agreement,
                         testing::Combine(testing::Values(Op::kSoftmax, Op::kStickBreaking),
                                          testing::Values(0.0, 1.0, 12.0, 400.0, 0x1p-70), testing::Bool()));

}  // namespace
}  // namespace attest::certified
