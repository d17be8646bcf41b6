#include "harness/fill.h"

#include <gtest/gtest.h>

#include <string>

#include "harness/materialise.h"
#include "harness/tensors.h"

namespace attest {
namespace {

at::Tensor repeated(const at::Tensor& kv, const AttentionProblem& p) {
  return kv.to(at::kDouble).repeat_interleave(p.group(), 1);
}

/// z [B, Hq, Sq, Skv] in fp64.
at::Tensor logits(const Inputs& in) {
  return in.problem.softmax_scale * at::matmul(in.q.to(at::kDouble), repeated(in.k, in.problem).transpose(2, 3));
}

Inputs made(const std::string& words) { return materialise(parse_case(words)); }

/// The largest |z| of each row, over the keys that the padding keeps.
at::Tensor row_maxima(const Inputs& in) {
  at::Tensor z = logits(in).abs();
  if (in.key_padding_mask.defined()) z = z.masked_fill(in.key_padding_mask.logical_not().view({z.size(0), 1, 1, -1}), 0);
  return z.amax(3);
}

TEST(Saturated, every_row_reaches_its_magnitude) {
  for (const char* magnitude : {"5", "11", "88", "10000", "60000", "250000"})
    for (const char* dtype : {"fp16", "bf16", "fp32"})
      for (const char* shape : {"D=1", "D=2 scale=-0.001", "D=46", "D=64 scale=3", "D=256"}) {
        const Inputs in = made(std::string("B=2 Hq=4 Hkv=2 Sq=5 Skv=17 padding=some seed=4 ") + shape + " " + dtype +
                               " logits=saturated(" + magnitude + ")");
        const at::Tensor ratio = row_maxima(in) / std::stod(magnitude);
        EXPECT_GT(ratio.min().item<double>(), 0.3) << shape << dtype << magnitude;
        EXPECT_LT(ratio.max().item<double>(), 2.5) << shape << dtype << magnitude;
        EXPECT_LT(logits(in).min().item<double>(), 0);
        EXPECT_GT(logits(in).max().item<double>(), 0);
      }
}

TEST(Negative, every_logit_is_near_minus_the_magnitude) {
  for (const char* scale : {"0.25", "-2"})
    for (double magnitude : {8.0, 250000.0}) {
      const at::Tensor z = logits(made("Hq=2 Sq=6 Skv=40 D=64 fp16 seed=9 scale=" + std::string(scale) + " logits=negative(" +
                                       std::to_string(magnitude) + ")")) /
                           magnitude;
      EXPECT_GT(z.min().item<double>(), -1.6);
      EXPECT_LT(z.max().item<double>(), -0.5);
    }
}

TEST(Equal, all_keys_of_a_head_are_the_same_and_heads_differ) {
  const Inputs in = made("B=2 Hq=2 Hkv=2 Sq=3 Skv=9 D=8 logits=equal");
  EXPECT_TRUE(in.k.equal(in.k.narrow(2, 0, 1).expand_as(in.k)));
  EXPECT_FALSE(in.k.select(1, 0).equal(in.k.select(1, 1)));
  EXPECT_FALSE(in.q.select(2, 0).equal(in.q.select(2, 1)));
}

TEST(CancellingLogits, sums_are_far_smaller_than_their_terms_and_pairs_of_keys_nearly_agree) {
  const Inputs in = made("Hq=2 Sq=9 Skv=32 D=64 seed=5 logits=cancelling");
  const at::Tensor z = logits(in);
  const at::Tensor terms =
      in.problem.softmax_scale * at::matmul(in.q.to(at::kDouble).abs(), repeated(in.k, in.problem).abs().transpose(2, 3));
  EXPECT_GT(terms.mean().item<double>(), 10 * z.abs().mean().item<double>());
  EXPECT_GT(z.abs().mean().item<double>(), 0.1);
  const at::Tensor pairs = z.view({1, 2, 9, 16, 2});
  EXPECT_GT(z.abs().mean().item<double>(), 2 * (pairs.select(4, 0) - pairs.select(4, 1)).abs().mean().item<double>());
}

TEST(SubnormalLogits, q_is_mostly_subnormal_and_never_all_zero) {
  for (const auto& [dtype, smallest] : {std::pair{"fp16", 0x1p-14}, std::pair{"bf16", 0x1p-126}, std::pair{"fp32", 0x1p-126}}) {
    const at::Tensor q = made(std::string("Sq=16 D=16 logits=subnormal ") + dtype).q.to(at::kDouble).abs();
    EXPECT_LT(q.max().item<double>(), smallest) << dtype;
    EXPECT_GT((q > 0).to(at::kDouble).mean().item<double>(), 0.9) << dtype;
  }
}

TEST(OneHotLogits, each_is_exactly_plus_or_minus_the_magnitude_or_zero) {
  const at::Tensor z = logits(made("Hq=2 Sq=16 Skv=16 D=16 scale=0.5 logits=one-hot(64)"));
  EXPECT_TRUE(z.abs().eq(32).logical_or(z.eq(0)).all().item<bool>());
  for (double value : {32.0, -32.0, 0.0}) EXPECT_TRUE(z.eq(value).any().item<bool>()) << value;
}

TEST(Values, each_fill_is_what_it_says) {
  Inputs in = made("Sq=4 Skv=9 D=4 Dv=4 values=constant");
  EXPECT_TRUE(in.v.equal(in.v.narrow(2, 0, 1).expand_as(in.v)));
  EXPECT_TRUE(in.dout.equal(in.dout.narrow(2, 0, 1).expand_as(in.dout)));
  in = made("Sq=4 Skv=9 D=4 Dv=4 values=one-hot");
  EXPECT_EQ(in.v[0][0][6][2].item<double>(), 1);
  EXPECT_EQ(in.v.sum().item<double>(), 9);
  in = made("Skv=64 D=8 values=cancelling");
  EXPECT_LT(in.v.to(at::kDouble).view({32, 2, 8}).sum(1).abs().mean().item<double>(), 0.2 * in.v.abs().mean().item<double>());
  in = made("Skv=64 D=8 fp16 values=subnormal");
  EXPECT_LT(in.v.abs().max().item<double>(), 0x1p-14);
  EXPECT_GT(in.v.abs().max().item<double>(), 0);
  in = made("Skv=64 D=8 fp16 values=large");
  EXPECT_GT(in.v.abs().max().item<double>(), 8000);
}

/// dq, dk, dv and out of softmax in fp64, the largest magnitude among them.
double largest_result(const Inputs& in) {
  const at::Tensor k = repeated(in.k, in.problem), v = repeated(in.v, in.problem), q = in.q.to(at::kDouble),
                   dout = in.dout.to(at::kDouble);
  const at::Tensor P = at::softmax(logits(in), 3), dP = at::matmul(dout, v.transpose(2, 3));
  const at::Tensor dz = in.problem.softmax_scale * P * (dP - (P * dP).sum(3, true) + in.dlse.unsqueeze(3));
  double largest = 0;
  for (const at::Tensor& t :
       {at::matmul(P, v), at::matmul(P.transpose(2, 3), dout), at::matmul(dz, k), at::matmul(dz.transpose(2, 3), q)})
    largest = std::max(largest, t.abs().max().item<double>());
  return largest;
}

TEST(Range, results_in_fp16_stay_finite_under_every_fill) {
  for (LogitFill logit : EnumSet<LogitFill>::all().members())
    for (ValueFill value : EnumSet<ValueFill>::all().members())
      for (const char* magnitude : {"8", "250000"})
        for (const char* shape : {"D=1", "D=64 scale=2", "D=64 scale=0.001"}) {
          Case c = parse_case(std::string("fp16 Hq=3 Hkv=1 Sq=129 Skv=17 dlse seed=1 ") + shape);
          c.logits = logit;
          c.values = value;
          if (logit == LogitFill::kSaturated || logit == LogitFill::kNegative || logit == LogitFill::kOneHot)
            c.magnitude = std::stof(magnitude);
          EXPECT_LT(largest_result(materialise(c)), 65504 / 2) << c;
        }
}

TEST(Padding, one_key_is_kept_and_one_hidden) {
  for (KeyPadding padding : {KeyPadding::kRight, KeyPadding::kLeft, KeyPadding::kSome, KeyPadding::kLeadingTile})
    for (int keys = 1; keys < 40; ++keys)
      for (uint64_t seed = 0; seed < 8; ++seed) {
        Case c = parse_case("B=2 Skv=" + std::to_string(keys));
        c.padding = padding;
        c.seed = seed;
        const at::Tensor kept = materialise(c).key_padding_mask.sum(1);
        EXPECT_GE(kept.min().item<int64_t>(), 1) << c;
        EXPECT_LE(kept.max().item<int64_t>(), std::max(keys - 1, 1)) << c;
      }
}

TEST(Padding, all_hides_the_odd_batch_elements_and_a_single_one) {
  EXPECT_TRUE(made("B=3 Skv=2 padding=all").key_padding_mask.equal(at::tensor({1, 1, 0, 0, 1, 1}).view({3, 2}).to(at::kBool)));
  EXPECT_FALSE(made("Skv=2 padding=all").key_padding_mask.any().item<bool>());
  EXPECT_TRUE(made("Skv=4 padding=leading-tile").key_padding_mask.equal(at::tensor({0, 0, 1, 1}).view({1, 4}).to(at::kBool)));
}

}  // namespace
}  // namespace attest
