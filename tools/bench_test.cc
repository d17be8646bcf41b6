// attest bench as a user meets it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "build_info.h"
#include "harness/error.h"
#include "tools/bench/result.h"
#include "tools/machine.h"
#include "tools/test_program.h"

namespace attest {
namespace {

using bench::Outcome;
using testing::HasSubstr;

constexpr int kNothingRan = static_cast<int>(ExitCode::kNothingRan);
constexpr int kKernelWrong = static_cast<int>(ExitCode::kKernelWrong);
bench::Results results_in(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return bench::decode_results(text.str());
}

TEST(BenchProgram, measures_every_variant_on_every_small_case_and_keeps_it) {
  const std::string file = fresh_folder() + "/bench.json";
  const ProgramRun run = attest_program({"bench", "--device", "cpu", "--variant", "*.cpu.fixed_order", "--case", "decode-64", "--case",
                                  "prefill-32", "--out", file});
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("softmax decode-64 forward+backward"));
  EXPECT_THAT(run.output, HasSubstr("stickbreaking prefill-32 forward "));
  const bench::Results results = results_in(file);
  EXPECT_EQ(results.gpu, "cpu");
  EXPECT_EQ(results.commit, kCommit);
  EXPECT_EQ(results.kernels, bench::kernel_hashes());
  EXPECT_EQ(results.rows.size(), 2U * 2U * 2U);  // operators, cases, passes
  for (const bench::Row& row : results.rows) EXPECT_EQ(row.outcome, Outcome::kMeasured) << row.variant << ": " << row.sentence;
}

TEST(BenchProgram, a_step_of_the_model_is_measured_with_a_cache_and_without) {
  const std::string file = fresh_folder() + "/model.json";
  const ProgramRun run = attest_program({"bench", "model", "--device", "cpu", "--prompt", "5", "--batch", "2", "--repeats", "3", "--out", file});
  EXPECT_EQ(run.exit_code, 0) << run.output;
  const auto json = nlohmann::json::parse(std::ifstream(file));
  ASSERT_EQ(json.at("rows").size(), 1U);
  const auto& row = json.at("rows")[0];
  EXPECT_EQ(row.at("prompt"), 5);
  EXPECT_EQ(row.at("batch"), 2);
  for (const char* step : {"cached", "recomputed", "attention"}) {
    EXPECT_GT(row.at(step).at("events_ms").get<double>(), 0) << step;
    EXPECT_FALSE(row.at(step).contains("graph_ms")) << step;
  }
  EXPECT_LT(row.at("attention_share").get<double>(), 1);
}

TEST(BenchProgram, a_crashing_variant_is_reported_and_the_rest_go_on) {
  const std::string file = fresh_folder() + "/bench.json";
  const ProgramRun run =
      attest_program({"bench", "--device", "cpu", "--op", "softmax", "--variant", "softmax.cpu.fixed_order", "--variant",
                      "faulty.softmax.segfault", "--case", "prefill-32", "--pass", "forward", "--out", file});
  EXPECT_EQ(run.exit_code, kKernelWrong) << run.output;
  EXPECT_THAT(run.output, HasSubstr("crashed: it ended its process: signal 11"));
  const auto rows = results_in(file).rows;
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].outcome, Outcome::kCrashed);
  EXPECT_EQ(rows[1].outcome, Outcome::kMeasured);
}

TEST(BenchProgram, without_a_gpu_it_says_so_in_one_sentence) {
  if (!why_no_gpu()) GTEST_SKIP() << "there is a GPU";
  const ProgramRun run = attest_program({"bench"});
  EXPECT_EQ(run.exit_code, kNothingRan);
  EXPECT_THAT(run.output, HasSubstr("attest bench needs a GPU"));
  EXPECT_EQ(std::count(run.output.begin(), run.output.end(), '\n'), 1) << run.output;
}

TEST(BenchProgram, bad_usage_is_refused_before_anything_runs) {
  for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{{"--case", "no-such-case"},
                                                                                    {"--variant", "no.such.variant"},
                                                                                    {"--repeats", "29"},
                                                                                    {"--pass", "sideways"},
                                                                                    {"--op", "convolution"}}) {
    std::vector<std::string> all{"bench", "--device", "cpu"};
    all.insert(all.end(), args.begin(), args.end());
    EXPECT_EQ(attest_program(all).exit_code, code(ExitCode::kBadUsage)) << args.back();
  }
}

TEST(BenchProgram, the_error_of_an_unknown_case_lists_those_that_would_be_taken) {
  const ProgramRun small = attest_program({"bench", "--device", "cpu", "--case", "decode-128"});  // one of a GPU's
  EXPECT_EQ(small.exit_code, code(ExitCode::kBadUsage));
  EXPECT_THAT(small.output, HasSubstr("no case of --device cpu is called that; there are decode-64 "));
  EXPECT_THAT(small.output, HasSubstr(" prefill-32-long"));
  EXPECT_EQ(small.output.find("decode-1k"), std::string::npos) << small.output;
  const ProgramRun softmax = attest_program({"bench", "--op", "softmax", "--case", "decode-1k-long"});  // stick-breaking's
  EXPECT_EQ(softmax.exit_code, code(ExitCode::kBadUsage));
  EXPECT_EQ(softmax.output.find("-long"), std::string::npos) << softmax.output;
}

}  // namespace
}  // namespace attest
