// Sequences of a call, on the host: which are refused and why, and where each lies in the tensors. Needs no GPU.
#include "kernels/hopper/sequences.h"

#include <gtest/gtest.h>

namespace attest::fused {
namespace {

AttentionParams buffers(int64_t batch, int64_t seqlen_q, int64_t seqlen_kv) {
  AttentionParams p;
  p.batch = batch, p.seqlen_q = seqlen_q, p.seqlen_kv = seqlen_kv;
  return p;
}
std::string reason(const AttentionParams& p, const Sequences& sequences) {
  return sequences_invalid(p, sequences).value_or("none");
}

TEST(SequencesOfACall, ascending_ones_within_the_buffers_are_taken_empty_ones_too) {
  EXPECT_EQ(reason(buffers(1, 10, 20), {{0, 0, 4, 0, 9}, {0, 4, 0, 9, 1}, {0, 4, 6, 10, 0}, {0, 10, 0, 10, 10}}), "none");
  EXPECT_EQ(reason(buffers(2, 5, 8), {{0, 0, 5, 0, 8}, {1, 0, 1, 0, 0}}), "none");
  EXPECT_EQ(reason(buffers(2, 5, 8), {}), "none");
}

TEST(SequencesOfACall, others_are_refused_with_a_sentence) {
  EXPECT_EQ(reason(buffers(1, 10, 20), {{0, 0, 4, 0, 9}, {0, 3, 4, 9, 1}}),
            "sequence 1 begins at query 3, before the end of the one before it");
  EXPECT_EQ(reason(buffers(1, 10, 20), {{0, 0, 4, 0, -1}}), "sequence 0 has -1 key rows");
  EXPECT_EQ(reason(buffers(1, 10, 20), {{0, 0, 4, 15, 6}}), "sequence 0 ends at key 21, past the buffer's 20 rows");
  EXPECT_EQ(reason(buffers(2, 10, 20), {{1, 0, 4, 0, 6}, {0, 0, 1, 0, 1}}), "sequence 1 is of batch element 0");
  EXPECT_EQ(reason(buffers(2, 10, 20), {{2, 0, 4, 0, 6}}), "sequence 0 is of batch element 2");
}

TEST(SequencesOfACall, a_sequence_lies_at_its_rows_of_every_tensor) {
  std::vector<uint16_t> elements(4096);
  std::vector<float> values(256);
  std::vector<uint8_t> keep(64);
  AttentionParams p = buffers(2, 10, 20);
  p.q = {elements.data(), 100, 50, 5, 1};
  p.dv = {elements.data(), 400, 200, 10, 1};
  p.lse = {values.data(), 60, 10, 1, 0};
  p.keep = keep.data(), p.keep_batch = 20, p.keep_key = 1;
  const AttentionParams one = sequence_of(p, {.batch = 1, .q_begin = 3, .n_q = 4, .kv_begin = 7, .n_kv = 9});
  EXPECT_EQ(one.batch, 1);
  EXPECT_EQ(one.seqlen_q, 4);
  EXPECT_EQ(one.seqlen_kv, 9);
  EXPECT_EQ(one.q.data, elements.data() + 100 + 3 * 5);
  EXPECT_EQ(one.dv.data, elements.data() + 400 + 7 * 10);
  EXPECT_EQ(one.lse.data, values.data() + 60 + 3);
  EXPECT_EQ(one.keep, keep.data() + 20 + 7);
  EXPECT_EQ(one.k.data, nullptr);
}

}  // namespace
}  // namespace attest::fused
