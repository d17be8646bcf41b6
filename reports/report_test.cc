// Approval tests of report text: what is printed must be what reports/approved/ holds. After an intended change, run with
// ATTEST_APPROVE=1 and read the difference.
#include "reports/report.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "build_info.h"
#include "harness/error.h"
#include "reports/grid.h"

namespace attest {
namespace {

CellResult cell(const std::string& variant, const std::string& property, Status status, const std::string& sentence = "") {
  CellResult c;
  c.cell = {variant, property};
  c.status = c.worst.status = status;
  c.sentence = c.worst.sentence = sentence;
  c.source.made_by =
      parse_case("op=softmax B=1 Hq=1 Hkv=1 Sq=1 Skv=65 D=16 bf16 causal logits=saturated(88) values=one-hot seed=7");
  c.found = c.source;
  c.passed = status == Status::kPass ? 57 : 0;
  return c;
}

CampaignResult example() {
  CampaignResult r;
  CellResult wrong = cell("softmax.cuda.fused", "agrees_with_oracle.forward", Status::kIncorrect,
                          "out disagrees with the oracle beyond its bound");
  Comparison c;
  c.outcome = Comparison::Outcome::kFail;
  c.quantity = "out";
  c.index = {0, 0, 0, 3};
  c.actual = 0.99609375;
  c.expected = 1;
  c.radius = 3e-19;
  c.actual_bits = 0x3f7f;
  c.expected_bits = 0x3f80;
  c.bits_width = 16;
  c.error = 0.00390625;
  c.error_ulps = 1;
  c.bound = 0.0029296875;
  c.headroom = 1.33;
  c.elements = 16;
  c.failing = 1;
  wrong.worst.comparisons = {c};
  wrong.cases_before = 41;
  wrong.shrinks = 6;
  wrong.probes = 19;
  wrong.fixture = "runs/x/fixtures/softmax.cuda.fused/agrees_with_oracle.forward/1.h5";
  CellResult right = cell("softmax.cpu.fixed_order", "agrees_with_oracle.forward", Status::kPass);
  right.worst_headroom = {{"out", 0.31}, {"lse", 0.12}};
  right.elements = 4096;
  right.vacuous_elements = 3;
  r.cells = {right,
             cell("softmax.cpu.fixed_order", "agrees_with_oracle.gradients", Status::kPass),
             cell("softmax.cpu.fixed_order", "returns", Status::kPass),
             wrong,
             cell("softmax.cuda.fused", "agrees_with_oracle.gradients", Status::kPass),
             cell("softmax.cuda.fused", "returns", Status::kPass),
             cell("softmax.other", "agrees_with_oracle.forward", Status::kNotPromised, "batch element 1 run alone differs"),
             cell("softmax.other", "returns", Status::kTimedOut, "no answer within 20 s"),
             cell("stickbreaking.cuda.fixed_order", "returns", Status::kNeedsGpu, "needs a GPU")};
  r.provenance = {{"seed", "7"}, {"attest", "0.1.0"}, {"libtorch", "2.11.0"}};
  r.cases = 400;
  r.seconds = 12.5;
  r.time = {500, 300, 200, {400, 6, 1}};
  return r;
}

void expect_approved(const std::string& name, const std::string& text) {
  const std::string path = std::string(kSourceDir) + "/reports/approved/" + name;
  if (std::getenv("ATTEST_APPROVE") != nullptr) write_file(path, text);
  std::ifstream file(path);
  std::stringstream approved;
  approved << file.rdbuf();
  EXPECT_EQ(text, approved.str()) << path;
}

TEST(Report, text_is_as_approved) { expect_approved("report.txt", text_report(example())); }
TEST(Report, markdown_is_as_approved) { expect_approved("report.md", markdown_report(example())); }

TEST(Report, json_is_read_again_without_loss) {
  const std::string path = testing::TempDir() + "/report.json";
  write_file(path, json_report(example()));
  const CampaignResult again = read_report(path);
  EXPECT_EQ(json_report(again), json_report(example()));
}

TEST(Report, what_is_no_report_is_refused_with_a_sentence) {
  const std::string path = testing::TempDir() + "/not_a_report.json";
  for (const char* text : {"", "{", "[]", "{\"format\": \"attest report 1\"}", "{\"format\": \"something else\"}"}) {
    write_file(path, text);
    EXPECT_THROW(read_report(path), UsageError) << text;
  }
}

TEST(Report, the_exit_code_is_the_gravest_thing_that_happened) {
  CampaignResult r;
  EXPECT_EQ(exit_code(r), static_cast<int>(ExitCode::kNothingRan));
  r.cells = {cell("softmax.a", "returns", Status::kNeedsGpu)};
  EXPECT_EQ(exit_code(r), static_cast<int>(ExitCode::kNothingRan)) << "a skip is no pass";
  r.cells.push_back(cell("softmax.z", "returns", Status::kNotPromised));
  r.cells.back().cases_before = r.cells.back().passed = 3;
  EXPECT_EQ(exit_code(r), static_cast<int>(ExitCode::kNothingRan)) << "nor is a cell that passed on some cases only";
  EXPECT_TRUE(conclusion(r).starts_with("Nothing passed")) << conclusion(r);
  r.cells.push_back(cell("softmax.b", "returns", Status::kPass));
  EXPECT_EQ(exit_code(r), static_cast<int>(ExitCode::kAllPassed));
  r.interrupted = true;
  EXPECT_EQ(exit_code(r), static_cast<int>(ExitCode::kInterrupted));
  EXPECT_TRUE(conclusion(r).starts_with("Interrupted")) << conclusion(r);
  r.cells.push_back(cell("softmax.c", "returns", Status::kUndecided));
  EXPECT_EQ(exit_code(r), static_cast<int>(ExitCode::kHarnessFailed)) << "undecided is never a pass";
  r.cells.push_back(cell("softmax.d", "returns", Status::kFlaky));
  EXPECT_EQ(exit_code(r), static_cast<int>(ExitCode::kKernelWrong));
}

TEST(Report, shares_of_the_oracles_tiers_are_plain_numbers) {
  CampaignResult r = example();
  r.time.references = {30000, 30000, 12600, 945, 75, 1, 0};
  EXPECT_NE(effort_text(r).find("; escalated 100 % to tier 1, 42 % to tier 2, 3.1 % to tier 3, 0.25 % to tier 4, < 0.01 % to tier 5, "
                                "0 % to tier 6\n"),
            std::string::npos)
      << effort_text(r);
}

TEST(Report, merging_keeps_the_gravest_of_each_cell) {
  CampaignResult a, b;
  a.cells = {cell("softmax.a", "returns", Status::kPass), cell("softmax.b", "returns", Status::kNeedsGpu)};
  b.cells = {cell("softmax.a", "returns", Status::kCrashed), cell("softmax.b", "returns", Status::kPass)};
  a.cases = b.cases = 3;
  const CampaignResult merged = merge_reports({a, b});
  ASSERT_EQ(merged.cells.size(), 2U);
  EXPECT_EQ(merged.cells[0].status, Status::kCrashed);
  EXPECT_EQ(merged.cells[1].status, Status::kPass);
  EXPECT_EQ(merged.cases, 6);
}

}  // namespace
}  // namespace attest
