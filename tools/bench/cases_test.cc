#include "tools/bench/cases.h"

#include <gtest/gtest.h>

#include <set>

namespace attest::bench {
namespace {

AttentionProblem lengths(int64_t batch, int64_t seqlen_q, int64_t seqlen_kv, bool causal = true) {
  return {.batch = batch, .num_heads_q = 2, .seqlen_q = seqlen_q, .seqlen_kv = seqlen_kv, .causal = causal};
}

TEST(BenchCases, names_come_from_the_tensors) {
  EXPECT_EQ(shape_name(lengths(1, 1, 128)), "decode-128");
  EXPECT_EQ(shape_name(lengths(1, 1, 1024)), "decode-1k");
  EXPECT_EQ(shape_name(lengths(1, 512, 512)), "prefill-512");
  EXPECT_EQ(shape_name(lengths(8, 64, 64)), "batch8-prefill-64");
  EXPECT_EQ(shape_name(lengths(2, 64, 65536)), "batch2-chunk-64-of-64k");
  EXPECT_EQ(shape_name(lengths(1, 1500, 1500, false)), "prefill-1500-full");
  AttentionProblem own_heads = lengths(4, 2048, 2048);
  own_heads.num_heads_q = own_heads.num_heads_kv = 32;
  own_heads.head_dim = own_heads.head_dim_v = 128;
  EXPECT_EQ(shape_name(own_heads), "batch4-prefill-2k-h32");
  own_heads.head_dim = own_heads.head_dim_v = 64;
  EXPECT_EQ(shape_name(own_heads), "batch4-prefill-2k-h32-d64");
}

TEST(BenchCases, every_case_is_valid_and_has_its_own_name) {
  std::set<std::pair<Op, std::string>> names;
  for (const BenchCase& c : bench_cases()) {
    EXPECT_FALSE(c.problem.invalid_reason()) << c.name;
    EXPECT_EQ(c.name, shape_name(c.problem) + (c.values == Values::kLongRange ? "-long" : ""));
    EXPECT_TRUE(names.emplace(c.problem.op, c.name).second) << c.name;
  }
}

TEST(BenchCases, the_shapes_of_qwen3_8b_come_first_for_every_operator) {
  const std::vector<std::string> expected{"decode-128", "decode-1k",          "prefill-128",      "prefill-512",
                                          "prefill-1k", "batch4-prefill-128", "batch8-prefill-64"};
  for (Op op : EnumSet<Op>::all().members()) {
    std::vector<std::string> names;
    for (const BenchCase& c : bench_cases()) {
      if (c.problem.op != op || c.values != Values::kNormal || names.size() == expected.size()) continue;
      names.push_back(c.name);
      EXPECT_EQ(c.problem.num_heads_q, 32);
      EXPECT_EQ(c.problem.num_heads_kv, 8);
      EXPECT_EQ(c.problem.head_dim, 128);
      EXPECT_EQ(c.problem.dtype, Dtype::kBFloat16);
    }
    EXPECT_EQ(names, expected);
  }
}

TEST(BenchCases, every_device_has_some) {
  std::set<Device> devices;
  for (const BenchCase& c : bench_cases()) devices.insert(c.device);
  EXPECT_EQ(devices.size(), enum_size<Device>());
}

}  // namespace
}  // namespace attest::bench
