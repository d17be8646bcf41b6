// The laws about values, not about bits: each passes the plain kernel, catches the defect made for it, and is vacuous
// where it has nothing to test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "properties/fakes.h"
#include "properties/support.h"

namespace attest {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

const AttentionProblem kFull{.dtype = Dtype::kFloat32, .batch = 2, .num_heads_q = 4, .num_heads_kv = 2, .seqlen_q = 4,
                             .seqlen_kv = 6, .head_dim = 4, .head_dim_v = 3, .softmax_scale = 0.5F};

AttentionProblem causal(int64_t seqlen_q, int64_t seqlen_kv) {
  AttentionProblem p = kFull;
  p.causal = true, p.seqlen_q = seqlen_q, p.seqlen_kv = seqlen_kv;
  return p;
}

AttentionProblem stick(int64_t seqlen_q, int64_t seqlen_kv, bool attend_current) {
  AttentionProblem p = causal(seqlen_q, seqlen_kv);
  p.op = Op::kStickBreaking, p.attend_current = attend_current;
  return p;
}

void expect_catches(const std::string& law, const Inputs& in, Defect defect, const std::string& sentence) {
  const Verdict sound = judged(law, plain_kernel(in.problem.op), in);
  EXPECT_EQ(sound.status, Status::kPass) << law << ": " << sound.sentence;
  const Verdict verdict = judged(law, plain_kernel(in.problem.op, defect), in);
  EXPECT_EQ(verdict.status, Status::kIncorrect) << law << ": " << verdict.sentence;
  EXPECT_THAT(verdict.sentence, HasSubstr(sentence)) << law;
}

/// The plain kernel, its outputs changed afterwards.
KernelVariant changed(std::function<void(const Inputs&, Outputs&)> change) {
  KernelVariant variant = plain_kernel(Op::kSoftmax);
  variant.run = [sound = variant.run, change](const Inputs& in) {
    Outputs o = sound(in);
    change(in, o);
    return o;
  };
  return variant;
}

std::string complaint(const KernelVariant& variant) {
  const Verdict v = judged("returns", variant, numbered_inputs(kFull));
  EXPECT_EQ(v.status, Status::kIncorrect);
  return v.sentence;
}

TEST(Returns, passes_a_plain_kernel) {
  const Inputs forward_only = numbered_inputs(stick(3, 3, false)).forward_only();
  for (const Inputs& in : {numbered_inputs(kFull), padded_inputs(kFull, {1, 6}), forward_only})
    EXPECT_EQ(status_of("returns", in), Status::kPass);
}

TEST(Returns, catches_a_kernel_that_scales_the_queries_in_place) {
  EXPECT_EQ(complaint(changed([](const Inputs& in, Outputs&) { in.q[0][0][1][2] *= 0.5F; })),
            "the run wrote into the memory of its input q, first at element 6 of its storage");
}

TEST(Returns, catches_a_write_between_the_rows) {
  Inputs in = numbered_inputs(kFull);
  in.k = at::cat({in.k, in.k}, 3).narrow(3, 0, kFull.head_dim);
  const KernelVariant variant = changed([](const Inputs& i, Outputs&) {
    i.k.as_strided({1}, {1}, kFull.head_dim).fill_(7.0F);
  });
  EXPECT_EQ(judged("returns", variant, in).sentence,
            "the run wrote into the memory of its input k, first at element 4 of its storage");
}

TEST(Returns, catches_an_output_in_the_memory_of_an_input) {
  EXPECT_EQ(complaint(changed([](const Inputs& in, Outputs& o) { o.dq = in.q.view_as(in.q); })),
            "dq shares the memory of the input q");
}

TEST(Returns, catches_a_wrong_shape_or_type_or_a_missing_output) {
  EXPECT_EQ(complaint(changed([](const Inputs&, Outputs& o) { o.lse = o.lse.unsqueeze(-1); })),
            "lse has shape [2,4,4,1], promised [2,4,4]");
  EXPECT_EQ(complaint(changed([](const Inputs&, Outputs& o) { o.dk = o.dk.to(at::kHalf); })), "dk has type Half, promised Float");
  EXPECT_EQ(complaint(changed([](const Inputs&, Outputs& o) { o.dv = at::Tensor(); })), "dv was not returned");
}

TEST(AgreesWithOracle, passes_the_plain_kernel_in_every_dtype) {
  for (Dtype dtype : EnumSet<Dtype>::all().members())
    for (AttentionProblem p : {kFull, causal(5, 3), stick(4, 6, true)}) {
      p.dtype = dtype;
      for (const char* law : {"agrees_with_oracle.forward", "agrees_with_oracle.gradients"})
        EXPECT_EQ(status_of(law, numbered_inputs(p)), Status::kPass) << law << " " << p;
    }
}

TEST(AgreesWithOracle, catches_a_top_left_causal_mask) {
  expect_catches("agrees_with_oracle.forward", numbered_inputs(causal(1, 2)), Defect::kTopLeftCausal, "against plain: ");
}

TEST(AgreesWithOracle, catches_query_heads_mapped_by_repetition) {
  expect_catches("agrees_with_oracle.forward", numbered_inputs(kFull), Defect::kGqaRepeat, "against plain: ");
}

TEST(AgreesWithOracle, catches_a_dropped_gradient_of_lse) {
  expect_catches("agrees_with_oracle.gradients", numbered_inputs(kFull), Defect::kDropsDlse, "against plain: d");
}

/// One query, one key, z = 20: β is 1 in fp32, and its gradient is not 0.
Inputs saturated_stick() {
  Inputs in = numbered_inputs(
      {.op = Op::kStickBreaking, .dtype = Dtype::kFloat32, .seqlen_kv = 1, .causal = true, .attend_current = true});
  in.q.fill_(20.0F), in.k.fill_(1.0F), in.v.fill_(1e8F), in.dout.fill_(1.0F), in.dlse.fill_(0.0F);
  return in;
}

TEST(GradientsAtSaturation, catches_one_minus_beta) {
  expect_catches("gradients_at_saturation", saturated_stick(), Defect::kOneMinusBeta,
                 "dq[0,0,0,0] = 0 (0x00000000), yet the true gradient is surely positive");
}

TEST(GradientsAtSaturation, is_vacuous_where_the_contract_is_wider_than_the_gradients) {
  KernelVariant loose = plain_kernel(Op::kStickBreaking, Defect::kOneMinusBeta);
  loose.contract.tolerance = elementwise(1e9, 0.0);
  EXPECT_EQ(judged("gradients_at_saturation", loose, saturated_stick()).status, Status::kVacuous);
}

TEST(GradientsAtSaturation, fails_on_nan) {
  Inputs in = saturated_stick();
  KernelVariant nan = plain_kernel(Op::kStickBreaking);
  nan.run = [sound = nan.run](const Inputs& i) {
    Outputs o = sound(i);
    o.dk.fill_(NAN);
    return o;
  };
  EXPECT_THAT(judged("gradients_at_saturation", nan, in).sentence, HasSubstr("dk[0,0,0,0] = NaN"));
}

TEST(PaddedTrimmed, catches_padded_keys_in_the_denominator) {
  for (const char* law : {"padded_trimmed.forward", "padded_trimmed.gradients"}) {
    expect_catches(law, padded_inputs(kFull, {0, 2}), Defect::kPaddingInDenominator, "");
    expect_catches(law, padded_inputs(causal(4, 6), {0, 2}), Defect::kPaddingInDenominator, "");
    expect_catches(law, padded_inputs(causal(1, 6), {3, 0}), Defect::kPaddingInDenominator, "");
  }
}

TEST(PaddedTrimmed, names_the_batch_element) {
  const KernelVariant faulty = plain_kernel(Op::kSoftmax, Defect::kPaddingInDenominator);
  const Verdict v = judged("padded_trimmed.forward", faulty, padded_inputs(kFull, {0, 2}));
  EXPECT_THAT(v.sentence, HasSubstr("a batch element run without the padded keys at its end"));
  ASSERT_NE(worst_of(v), nullptr);
  EXPECT_EQ(worst_of(v)->index.at(0), 1);
}

TEST(PaddedTrimmed, holds_for_stick_breaking_where_positions_move) {
  for (bool current : {false, true})
    for (const char* law : {"padded_trimmed.forward", "padded_trimmed.gradients"})
      EXPECT_EQ(status_of(law, padded_inputs(stick(5, 7, current), {3, 1})), Status::kPass);
}

TEST(PaddedTrimmed, is_vacuous_where_nothing_can_be_left_out) {
  EXPECT_EQ(status_of("padded_trimmed.forward", numbered_inputs(kFull)), Status::kVacuous);
  EXPECT_EQ(status_of("padded_trimmed.forward", padded_inputs(kFull, {0, 6})), Status::kVacuous);
}

TEST(FullyMaskedRows, catches_a_missing_guard_in_the_forward) {
  expect_catches("fully_masked_rows.forward", padded_inputs(kFull, {1, 6}), Defect::kNanOnMaskedRows, "out[1,0,0,0] = NaN");
}

TEST(FullyMaskedRows, catches_a_missing_guard_in_the_backward) {
  expect_catches("fully_masked_rows.gradients", numbered_inputs(causal(2, 1)), Defect::kMaskedRowGradients, "dq[0,0,0,0] = NaN");
}

TEST(FullyMaskedRows, catches_a_finite_lse) {
  const KernelVariant variant = changed([](const Inputs&, Outputs& o) { o.lse.clamp_(-50000.0F); });
  EXPECT_THAT(judged("fully_masked_rows.forward", variant, numbered_inputs(causal(2, 1))).sentence,
              MatchesRegex("query 0 of batch element 0 sees no key, yet lse\\[0,0,0\\] = -50000 \\(0x[0-9a-f]+\\), not -inf"));
}

TEST(FullyMaskedRows, leaves_the_whole_stick) {
  EXPECT_EQ(status_of("fully_masked_rows.forward", numbered_inputs(stick(3, 3, false))), Status::kPass);
  EXPECT_EQ(status_of("fully_masked_rows.forward", numbered_inputs(stick(3, 3, true))), Status::kVacuous);
}

TEST(FullyMaskedRows, is_vacuous_where_every_query_sees_a_key) {
  EXPECT_EQ(status_of("fully_masked_rows.forward", padded_inputs(kFull, {1, 5})), Status::kVacuous);
}

TEST(HiddenKeys, catches_a_gradient_of_a_padded_key) {
  expect_catches("hidden_keys_have_zero_gradient", padded_inputs(kFull, {0, 2}), Defect::kPaddedKeyGradient,
                 "key 4 of batch element 1 is seen by no query, yet dk[1,0,4,0] = ");
}

TEST(HiddenKeys, may_have_zeros_of_either_sign) {
  const KernelVariant variant = changed([](const Inputs&, Outputs& o) { o.dk.masked_fill_(o.dk.eq(0), -0.0F); });
  EXPECT_EQ(judged("hidden_keys_have_zero_gradient", variant, padded_inputs(kFull, {0, 2})).status, Status::kPass);
}

TEST(HiddenKeys, are_also_those_beyond_every_query) {
  EXPECT_EQ(status_of("hidden_keys_have_zero_gradient", numbered_inputs(stick(1, 2, false))), Status::kPass);
  EXPECT_EQ(status_of("hidden_keys_have_zero_gradient", numbered_inputs(stick(1, 2, true))), Status::kVacuous);
}

}  // namespace
}  // namespace attest
