#include "tools/bench/flops.h"

#include <gtest/gtest.h>

#include "harness/mask.h"

namespace attest::bench {
namespace {

AttentionProblem small() {
  return {.batch = 2,
          .num_heads_q = 4,
          .num_heads_kv = 2,
          .seqlen_q = 3,
          .seqlen_kv = 5,
          .head_dim = 8,
          .head_dim_v = 8,
          .causal = true};
}

TEST(Flops, counts_made_by_hand_agree) {
  // Queries stand at 2, 3, 4 and see 3 + 4 + 5 = 12 keys; 2 · 4 heads: 96 pairs, each 2 · (8 + 8) FLOPs.
  EXPECT_EQ(visible_pairs(small()), 96);
  EXPECT_EQ(flops(small(), Pass::kForward), 96 * 32);
  EXPECT_EQ(flops(small(), Pass::kBoth), 96 * 32 * 3.5);
  // Qwen3-8B, prefill-1k: 4 · 32 · 128 · 1024 · 1025 / 2.
  const AttentionProblem qwen{.num_heads_q = 32,
                              .num_heads_kv = 8,
                              .seqlen_q = 1024,
                              .seqlen_kv = 1024,
                              .head_dim = 128,
                              .head_dim_v = 128,
                              .causal = true};
  EXPECT_EQ(flops(qwen, Pass::kForward), 4.0 * 32 * 128 * 1024 * 1025 / 2);
}

TEST(Flops, visible_pairs_are_those_that_the_mask_allows) {
  for (Op op : {Op::kSoftmax, Op::kStickBreaking}) {
    for (int64_t seqlen_q : {1, 3, 5, 9}) {
      for (bool flag : {false, true}) {
        AttentionProblem p = small();
        p.op = op;
        p.seqlen_q = seqlen_q;
        p.causal = op == Op::kStickBreaking || flag;
        p.attend_current = op == Op::kStickBreaking && flag;
        const Mask mask{p};
        int64_t pairs = 0;
        for (int64_t i = 0; i < p.seqlen_q; ++i)
          for (int64_t j = 0; j < p.seqlen_kv; ++j) pairs += mask.allows(0, i, j) ? 1 : 0;
        EXPECT_EQ(visible_pairs(p), pairs * p.batch * p.num_heads_q) << name_of(op) << " Sq=" << seqlen_q << " " << flag;
      }
    }
  }
}

TEST(Flops, bytes_count_each_tensor_once) {
  AttentionProblem p = small();
  p.head_dim_v = 16;
  const int64_t q = 2 * 4 * 3 * 8, k = 2 * 2 * 5 * 8, v = 2 * 2 * 5 * 16, out = 2 * 4 * 3 * 16, lse = 2 * 4 * 3;
  EXPECT_EQ(bytes(p, Pass::kForward), 2 * (q + k + v + out) + 4 * lse);
  EXPECT_EQ(bytes(p, Pass::kBoth), 2 * ((q + k + v + out) + (q + k + v + out)) + 4 * lse);  // dq, dk, dv and dout too
  p.dtype = Dtype::kFloat32;
  EXPECT_EQ(bytes(p, Pass::kForward), 4 * (q + k + v + out) + 4 * lse);
}

TEST(Flops, the_floor_is_the_slower_of_arithmetic_and_memory) {
  const AttentionProblem p = small();
  const double work = flops(p, Pass::kForward), traffic = bytes(p, Pass::kForward);
  EXPECT_DOUBLE_EQ(floor_ms(p, Pass::kForward, {work, 1e30}), 1000);
  EXPECT_DOUBLE_EQ(floor_ms(p, Pass::kForward, {1e30, traffic / 2}), 2000);
}

TEST(Flops, only_a_measured_machine_has_a_roof) {
  EXPECT_EQ(roof_of("NVIDIA H200"), (Roof{790e12, 4.8e12}));
  EXPECT_FALSE(roof_of("cpu"));
}

}  // namespace
}  // namespace attest::bench
