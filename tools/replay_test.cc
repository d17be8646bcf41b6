// attest replay and attest shrink as a user meets them: what a report prints can be pasted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "fixtures/fixture.h"
#include "harness/error.h"
#include "reports/report.h"
#include "tools/machine.h"
#include "tools/test_program.h"

namespace attest {
namespace {

using testing::HasSubstr;

/// Autograd's softmax gradient is wrong at saturation, whoever the operator's author.
ProgramRun failing_run(const std::string& variant, const std::string& out) {
  return attest_program({"run", "--load", SKELETON_operator, "--variant", variant, "--property", "agrees_with_oracle.gradients",
                         "--cases", "150", "--seed", "1", "--no-regression", "--out", out});
}

TEST(Replay, the_printed_line_works_for_a_torch_operator_of_a_library) {
  const std::string variant = "torch:mine::attention", out = fresh_folder();
  const ProgramRun run = failing_run(variant, out);
  ASSERT_EQ(run.exit_code, code(ExitCode::kKernelWrong)) << run.output;
  const std::string fixture = read_report(out).cells.at(0).fixture;
  EXPECT_THAT(run.output, HasSubstr("attest replay --load " SKELETON_operator " " + fixture + "\n"));
  const ProgramRun pasted = attest_program({"replay", "--load", SKELETON_operator, fixture});
  EXPECT_EQ(pasted.exit_code, code(ExitCode::kKernelWrong)) << pasted.output;
  EXPECT_THAT(pasted.output, HasSubstr("(as recorded)  " + variant));
  const ProgramRun without = attest_program({"replay", fixture});
  EXPECT_EQ(without.exit_code, code(ExitCode::kBadUsage));
  EXPECT_THAT(without.output, HasSubstr("--load " SKELETON_operator)) << "the fixture knows where its variant came from";
}

TEST(Replay, a_torch_operator_needs_no_name_again) {
  const std::string out = fresh_folder();
  ASSERT_EQ(failing_run("torch:aten::scaled_dot_product_attention", out).exit_code, code(ExitCode::kKernelWrong));
  const std::string fixture = read_report(out).cells.at(0).fixture;
  EXPECT_THAT(attest_program({"replay", fixture}).output, HasSubstr("(as recorded)"));
  const ProgramRun shrunk = attest_program({"shrink", fixture});
  EXPECT_EQ(shrunk.exit_code, code(ExitCode::kKernelWrong)) << shrunk.output;
}

TEST(Replay, the_case_line_is_taken_by_case_and_edits_stand_apart) {
  const std::string out = fresh_folder();
  const ProgramRun run = attest_program({"run", "--variant", "faulty.softmax.segfault", "--property", "returns", "--cases", "3",
                                         "--seed", "1", "--no-regression", "--out", out});
  EXPECT_THAT(run.output, HasSubstr("\n  edits      zero "));
  const size_t line = run.output.find("\n  case       ") + 14;
  const std::string text = run.output.substr(line, run.output.find('\n', line) - line);
  EXPECT_NO_THROW(parse_case(text)) << text;
}

class ShrinkProgram : public ::testing::Test {
 protected:
  ShrinkProgram() {
    const std::string out = fresh_folder();
    const ProgramRun run = attest_program({"run", "--variant", "faulty.softmax.tail_unmasked", "--property",
                                           "agrees_with_oracle.forward", "--cases", "20", "--seed", "1", "--out", out});
    fixture_ = read_report(out).cells.at(0).fixture;
    stem_ = std::filesystem::path(fixture_).replace_extension("").string();
  }
  std::string fixture_, stem_;
};

TEST_F(ShrinkProgram, never_writes_over_a_file) {
  for (const char* name : {".min.h5", ".min-2.h5", ".min-3.h5"}) {
    EXPECT_FALSE(std::filesystem::exists(stem_ + name));
    EXPECT_EQ(attest_program({"shrink", fixture_}).exit_code, code(ExitCode::kKernelWrong));
    EXPECT_NO_THROW(read_fixture(stem_ + name)) << name;
  }
  EXPECT_EQ(attest_program({"shrink", fixture_, "--out", fixture_}).exit_code, code(ExitCode::kBadUsage));
}

TEST_F(ShrinkProgram, and_replay_say_that_a_variant_needs_a_gpu) {
  if (!why_no_gpu()) GTEST_SKIP() << "there is a GPU";
  for (const char* command : {"replay", "shrink"}) {
    const ProgramRun run = attest_program({command, fixture_, "--variant", "softmax.torch.math@cuda"});
    EXPECT_EQ(run.exit_code, code(ExitCode::kNothingRan)) << run.output;
    EXPECT_THAT(run.output, HasSubstr("needs a GPU"));
  }
}

TEST_F(ShrinkProgram, takes_no_empty_name) {
  EXPECT_EQ(attest_program({"shrink", fixture_, "--out", ""}).exit_code, code(ExitCode::kBadUsage));
}

}  // namespace
}  // namespace attest
