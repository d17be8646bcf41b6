#include "tools/bench/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "harness/error.h"

namespace attest::bench {
namespace {

using testing::HasSubstr;

BenchCase first_case(Op op) {
  for (const BenchCase& c : bench_cases())
    if (c.problem.op == op) return c;
  return {};
}

Results sample() {
  Results r{"NVIDIA H200",
            "580.1",
            "0123456789ab",
            "2026-01-31",
            {{"libtorch", "2.11.0"}},
            Roof{790e12, 4.8e12},
            {{"softmax", "a1"}, {"stickbreaking", "b2"}},
            {}};
  r.rows.push_back({first_case(Op::kSoftmax),
                    Pass::kForward,
                    "softmax.cuda.fixed_order",
                    Outcome::kMeasured,
                    "",
                    {0.0625, 0.05, 0.1, 30, int64_t{4096}}});
  r.rows.push_back(
      {first_case(Op::kSoftmax), Pass::kBoth, "softmax.torch.math@cuda", Outcome::kOutOfMemory, "tried to allocate 1 TB", {}});
  r.rows.push_back(
      {first_case(Op::kStickBreaking), Pass::kBoth, "stickbreaking.cuda.fixed_order", Outcome::kMeasured, "", {2, 1, 3, 40, {}}});
  return r;
}

TEST(BenchResult, survives_json) {
  EXPECT_EQ(decode_results(encode(sample())), sample());
  for (const Row& row : sample().rows) EXPECT_EQ(decode_row(encode(row)), row);
}

TEST(BenchResult, a_foreign_file_gets_a_sentence) {
  EXPECT_THROW(decode_results("{}"), Error);
  EXPECT_THROW(decode_results("not json"), Error);
  EXPECT_THROW(decode_results(R"({"format": "attest bench 999"})"), Error);
}

TEST(BenchResult, achieved_rates_are_work_over_median) {
  const auto rows = nlohmann::json::parse(encode(sample())).at("rows");
  const AttentionProblem p = first_case(Op::kSoftmax).problem;
  const auto& derived = rows[0].at("derived");
  EXPECT_DOUBLE_EQ(derived.at("flops_per_second").get<double>(), flops(p, Pass::kForward) / 62.5e-6);
  EXPECT_DOUBLE_EQ(derived.at("bytes_per_second").get<double>(), bytes(p, Pass::kForward) / 62.5e-6);
  EXPECT_DOUBLE_EQ(derived.at("floor_ms").get<double>(), floor_ms(p, Pass::kForward, *sample().roof));
  EXPECT_FALSE(rows[1].at("derived").contains("flops_per_second"));
}

TEST(BenchResult, a_file_holds_one_operator_and_is_named_after_it) {
  const Results part = only(Op::kStickBreaking, sample());
  EXPECT_EQ(part.rows.size(), 1U);
  EXPECT_EQ(file_name(Op::kStickBreaking, part), "stickbreaking-nvidia-h200-2026-01-31.json");
}

TEST(BenchResult, the_table_shows_figures_and_failures) {
  const Results r = sample();
  const std::string text = text_table({r.rows[0]}, r.roof);
  EXPECT_THAT(text, HasSubstr("softmax decode-128 forward"));
  EXPECT_THAT(text, HasSubstr("floor (790 TFLOP/s, 4.8 TB/s)"));
  EXPECT_THAT(text, HasSubstr("0.0625"));
  EXPECT_THAT(text_table({r.rows[1]}, r.roof), HasSubstr("out of memory: tried to allocate 1 TB"));
}

TEST(BenchResult, each_folder_of_kernels_has_a_hash) {
  const std::map<std::string, std::string> hashes = kernel_hashes();
  for (const char* folder : {"softmax", "stickbreaking", "hopper"}) EXPECT_EQ(hashes.at(folder).size(), 64U) << folder;
  EXPECT_NE(hashes.at("softmax"), hashes.at("stickbreaking"));
  EXPECT_EQ(hashes.count("faulty"), 0U);
}

}  // namespace
}  // namespace attest::bench
