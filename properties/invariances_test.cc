// Each invariance passes the plain kernel, catches the defect made for it with a sentence readable alone, and is vacuous
// where it has nothing to test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "properties/fakes.h"

namespace attest {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

const AttentionProblem kCausal{.dtype = Dtype::kFloat32, .batch = 3, .num_heads_q = 2, .seqlen_q = 5, .seqlen_kv = 7,
                               .head_dim = 4, .head_dim_v = 3, .causal = true, .softmax_scale = 0.5F};
const AttentionProblem kVisible{.dtype = Dtype::kFloat32, .batch = 2, .num_heads_q = 2, .seqlen_q = 4, .seqlen_kv = 8,
                             .head_dim = 4, .head_dim_v = 3, .softmax_scale = 0.5F};

AttentionProblem stick(AttentionProblem p, bool attend_current) {
  p.op = Op::kStickBreaking;
  p.causal = true;
  p.attend_current = attend_current;
  return p;
}

/// Both halves of the law pass the plain kernel and fail the defective one.
void expect_both_catch(const std::string& law, const Inputs& in, Defect defect, const std::string& sentence) {
  for (const char* half : {".forward", ".gradients"}) {
    const Verdict sound = judged(law + half, plain_kernel(in.problem.op), in);
    EXPECT_EQ(sound.status, Status::kPass) << law << half << ": " << sound.sentence;
    const Verdict verdict = judged(law + half, plain_kernel(in.problem.op, defect), in);
    EXPECT_EQ(verdict.status, Status::kIncorrect) << law << half << ": " << verdict.sentence;
    EXPECT_THAT(verdict.sentence, HasSubstr(sentence)) << law << half;
  }
}

TEST(RepeatRun, catches_an_order_that_depends_on_the_launch) {
  expect_both_catch("repeat_run", numbered_inputs(kCausal), Defect::kLaunchOrder, "the second run differs: ");
}

TEST(RepeatRun, lets_a_function_be_nan) {
  Inputs in = numbered_inputs(kCausal);
  in.v.fill_(NAN);
  EXPECT_EQ(status_of("repeat_run.forward", in), Status::kPass);
}

TEST(BatchSize, catches_a_split_count_taken_from_the_batch_size) {
  expect_both_catch("batch_size", numbered_inputs(kCausal), Defect::kSplitByBatch, "batch element 0 run alone differs: ");
}

TEST(BatchSize, says_where_and_which_bits) {
  const Verdict v = judged("batch_size.forward", plain_kernel(Op::kSoftmax, Defect::kSplitByBatch), numbered_inputs(kVisible));
  EXPECT_THAT(v.sentence, MatchesRegex("batch element . run alone differs: out\\[.,.,.,.\\] 0x[0-9a-f]+ vs 0x[0-9a-f]+ "
                                       "\\([0-9]+ of 24 elements\\)"));
}

TEST(BatchSize, is_vacuous_for_a_batch_of_one) {
  AttentionProblem p = kVisible;
  p.batch = 1;
  for (const char* law : {"batch_size.forward", "batch_position.forward", "batch_chunking.forward"})
    EXPECT_EQ(status_of(law, numbered_inputs(p)), Status::kVacuous) << law;
}

TEST(BatchSize, fails_on_nan_even_when_both_runs_have_it) {
  Inputs in = numbered_inputs(kVisible);
  in.v.fill_(NAN);
  EXPECT_EQ(status_of("batch_size.forward", in), Status::kIncorrect);
}

TEST(BatchSize, names_the_element_by_its_place_in_the_whole) {
  KernelVariant variant = plain_kernel(Op::kSoftmax);
  const auto sound = variant.run;
  variant.run = [sound](const Inputs& in) {
    Outputs o = sound(in);
    if (in.problem.batch == 2) o.out[1][1][3][2] = 9.0F;
    return o;
  };
  EXPECT_THAT(judged("batch_size.forward", variant, numbered_inputs(kVisible)).sentence,
              MatchesRegex("batch element 1 run alone differs: out\\[1,1,3,2\\] 0x[0-9a-f]+ vs 0x41100000 .*"));
}

TEST(BatchPosition, catches_bits_that_depend_on_the_place_in_the_batch) {
  expect_both_catch("batch_position", numbered_inputs(kVisible), Defect::kPositionSeeded, "the batch in reversed order differs: ");
}

TEST(BatchPosition, says_nothing_of_the_batch_size) {
  EXPECT_EQ(judged("batch_position.forward", plain_kernel(Op::kSoftmax, Defect::kSplitByBatch), numbered_inputs(kVisible)).status,
            Status::kPass);
}

TEST(BatchChunking, catches_a_split_count_taken_from_the_batch_size) {
  expect_both_catch("batch_chunking", numbered_inputs(kCausal), Defect::kSplitByBatch, "the batch chunk [0, 1) differs: ");
}

TEST(ChunkedPrefill, catches_tiles_cut_from_the_chunks_end) {
  expect_both_catch("chunked_prefill", numbered_inputs(kCausal), Defect::kChunkRelativeTiles,
                 "the chunk of queries [0, 2) differs: ");
}

TEST(ChunkedPrefill, holds_with_key_padding_and_for_both_operators) {
  for (const AttentionProblem& p : {kCausal, stick(kCausal, true), stick(kCausal, false)})
    for (const char* law : {"chunked_prefill.forward", "chunked_prefill.gradients", "prefill_decode.forward"})
      EXPECT_EQ(status_of(law, padded_inputs(p, {0, 3, 7})), Status::kPass) << law << " " << p;
}

TEST(ChunkedPrefill, leaves_out_a_chunk_that_has_no_key_yet) {
  AttentionProblem p = kCausal;
  p.seqlen_q = 7, p.seqlen_kv = 3;
  EXPECT_EQ(status_of("chunked_prefill.forward", numbered_inputs(p)), Status::kPass);
}

TEST(ChunkedPrefill, judges_no_sum_over_queries) {
  const Property* law = Registry<Property>::instance().find("chunked_prefill.gradients");
  ASSERT_NE(law, nullptr);
  EXPECT_EQ(law->judges, EnumSet<Quantity>{Quantity::kDq});
}

TEST(PrefillDecode, catches_a_tile_of_its_own_for_decoding) {
  expect_both_catch("prefill_decode", numbered_inputs(kVisible), Defect::kDecodeTile, " decoded alone differs: ");
  expect_both_catch("prefill_decode", numbered_inputs(kCausal), Defect::kDecodeTile, " decoded alone differs: ");
}

TEST(PrefillDecode, is_vacuous_for_one_query) {
  AttentionProblem p = kVisible;
  p.seqlen_q = 1;
  EXPECT_EQ(status_of("prefill_decode.forward", numbered_inputs(p)), Status::kVacuous);
  EXPECT_EQ(status_of("chunked_prefill.forward", numbered_inputs(p)), Status::kVacuous);
}

TEST(KvCache, catches_splits_taken_from_the_capacity) {
  expect_both_catch("kv_cache", numbered_inputs(kVisible), Defect::kSplitsByCapacity,
                 "keys and values in a cache of capacity 9 differs: ");
}

TEST(KvCache, gives_no_cache_to_a_variant_that_takes_no_padded_rows) {
  KernelVariant variant = plain_kernel(Op::kSoftmax, Defect::kSplitsByCapacity);
  variant.domain.layouts = {Layout::kContiguous};
  EXPECT_EQ(judged("kv_cache.forward", variant, numbered_inputs(kVisible)).status, Status::kPass);
}

TEST(PaddingInert, catches_a_finite_score_for_padded_keys) {
  Inputs in = padded_inputs(kVisible, {8, 2});  // of the first element every key: equal scores win
  expect_both_catch("padding_inert", in, Defect::kPaddingSentinel, " in every padded key and value differs: ");
}

TEST(PaddingInert, is_vacuous_where_no_key_is_padded) {
  EXPECT_EQ(status_of("padding_inert.forward", numbered_inputs(kVisible)), Status::kVacuous);
  EXPECT_EQ(status_of("padding_inert.forward", padded_inputs(kVisible, {0, 0})), Status::kVacuous);
}

TEST(PaddingInert, spares_variants_without_poison_the_nan) {
  KernelVariant variant = plain_kernel(Op::kSoftmax);
  variant.domain.poison = {false};
  const auto sound = variant.run;
  variant.run = [sound](const Inputs& in) {
    EXPECT_FALSE(in.k.isnan().any().item<bool>());
    return sound(in);
  };
  EXPECT_EQ(judged("padding_inert.forward", variant, padded_inputs(kVisible, {1, 2})).status, Status::kPass);
}

TEST(CausalPrefix, catches_a_maximum_over_later_keys) {
  expect_both_catch("causal_prefix", numbered_inputs(kCausal), Defect::kPeeksAhead, "the run with other keys from ");
}

TEST(CausalPrefix, holds_for_stick_breaking_with_and_without_the_current_key) {
  for (bool current : {false, true})
    EXPECT_EQ(status_of("causal_prefix.forward", numbered_inputs(stick(kCausal, current))), Status::kPass);
}

TEST(CausalPrefix, is_vacuous_without_later_keys) {
  AttentionProblem p = kCausal;
  EXPECT_EQ(status_of("causal_prefix.forward", numbered_inputs(kVisible)), Status::kVacuous);
  p.seqlen_q = 1;
  EXPECT_EQ(status_of("causal_prefix.forward", numbered_inputs(p)), Status::kVacuous);
}

TEST(Invariances, of_parts_outside_the_variants_domain_are_unsupported) {
  KernelVariant variant = plain_kernel(Op::kSoftmax);
  variant.domain.seqlen_q = {.lo = 4};
  const Verdict v = judged("prefill_decode.forward", variant, numbered_inputs(kVisible));
  EXPECT_EQ(v.status, Status::kUnsupported);
  EXPECT_THAT(v.sentence, HasSubstr("query 3 decoded alone: "));
}

TEST(Invariances, judge_no_gradient_where_none_is_asked_for) {
  Inputs in = numbered_inputs(kVisible);
  in.dout = in.dlse = at::Tensor();
  EXPECT_EQ(status_of("batch_size.gradients", in), Status::kVacuous);
}

}  // namespace
}  // namespace attest
