// The program as a user meets it: exit codes, sentences, determinism, resuming.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <string.h>

#include <boost/process/args.hpp>
#include <boost/process/child.hpp>
#include <boost/process/exe.hpp>
#include <boost/process/io.hpp>
#include <boost/process/pipe.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "harness/error.h"
#include "reports/report.h"
#include "tools/test_program.h"

namespace attest {
namespace {

namespace bp = boost::process;
using testing::HasSubstr;

std::vector<std::string> small_run(const std::string& out, std::vector<std::string> more = {}) {
  std::vector<std::string> args{"run",
                                "--variant",
                                "*.cpu.fixed_order",
                                "--variant",
                                "faulty.softmax.tail_unmasked",
                                "--cases",
                                "20",
                                "--seed",
                                "5",
                                "--no-regression",
                                "--out",
                                out};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

/// What two runs of one seed must share: everything but times.
nlohmann::json comparable(const std::string& folder) {
  nlohmann::json cells = nlohmann::json::parse(json_report(read_report(folder))).at("cells");
  for (auto& c : cells) c["fixture"] = "";
  return cells;
}

TEST(Program, bad_usage_has_its_own_exit_code_and_one_sentence) {
  const std::vector<std::vector<std::string>> wrong = {
      {"run", "--variant", "no.such.thing"},
      {"run", "--property", "no_such_law"},
      {"run", "--op", "convolution"},
      {"run", "--case", "op=softmax B=0"},
      {"run", "--case", "op=softmax Banana=3"},
      {"run", "--cases", "-4"},
      {"run", "--cases", "many"},
      {"run", "--case", ""},
      {"run", "--case", "op=softmax Sq=1 Sq=2"},
      {"run", "--case", "op=softmax bf16 fp32"},
      {"run", "--out", ""},
      {"run", "--resume", ""},
      {"run", "--budget", ""},
      {"run", "--seed", "-1"},
      {"run", "--seed", "1x"},
      {"run", "--timeout", "soon"},
      {"run", "--budget", "-3m"},
      {"run", "--load", "/no/such/library.so"},
      {"run", "--variant", "torch:no::such_operator"},
      {"run", "--resume", "/no/such/folder"},
      {"replay", "/no/such/file.h5"},
      {"shrink", "/no/such/file.h5"},
      {"report", "/no/such/folder"},
      {"list", "everything"},
      {"frobnicate"},
      {},
  };
  for (const auto& args : wrong) {
    const ProgramRun run = attest_program(args);
    EXPECT_EQ(run.exit_code, code(ExitCode::kBadUsage)) << ::testing::PrintToString(args) << "\n" << run.output;
    EXPECT_EQ(run.output.find("terminate called"), std::string::npos);
    EXPECT_FALSE(run.output.empty());
  }
}

TEST(Program, a_seed_gives_the_same_report_whatever_the_number_of_jobs) {
  const std::string one = fresh_folder() + "-1", two = fresh_folder() + "-2";
  std::filesystem::remove_all(one);
  std::filesystem::remove_all(two);
  EXPECT_EQ(attest_program(small_run(one, {"--jobs", "1"})).exit_code, code(ExitCode::kKernelWrong));
  EXPECT_EQ(attest_program(small_run(two, {"--jobs", "3"})).exit_code, code(ExitCode::kKernelWrong));
  EXPECT_EQ(comparable(one), comparable(two));
}

int64_t lines_of(const std::string& path) {
  std::ifstream file(path);
  return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
}

/// Runs the program, sends `signal` once its journal has so many lines, and waits.
ProgramRun stopped_program(const std::vector<std::string>& args, const std::string& out, int signal, int64_t lines = 12,
                           std::chrono::milliseconds later = {}) {
  bp::ipstream text;
  bp::child child(bp::exe = std::string(ATTEST_PROGRAM), bp::args = args, (bp::std_out & bp::std_err) > text);
  const std::string journal = out + "/journal.jsonl";
  for (int i = 0; i < 3000 && lines_of(journal) < lines; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::this_thread::sleep_for(later);
  kill(child.id(), signal);
  ProgramRun run;
  run.output.assign(std::istreambuf_iterator<char>(text), {});
  child.wait();
  run.exit_code = child.exit_code();
  return run;
}

class Stopped : public ::testing::TestWithParam<int> {};

TEST_P(Stopped, run_is_resumed_to_the_report_it_would_have_given) {
  const std::string whole = fresh_folder() + "-whole", stopped = fresh_folder() + "-stopped";
  std::filesystem::remove_all(whole);
  std::filesystem::remove_all(stopped);
  attest_program(small_run(whole, {"--jobs", "2"}));
  stopped_program(small_run(stopped, {"--jobs", "2"}), stopped, GetParam());
  ASSERT_GE(lines_of(stopped + "/journal.jsonl"), 12);
  // An interrupt still leaves a report of what was found, a kill none.
  ASSERT_EQ(std::filesystem::exists(stopped + "/report.json"), GetParam() != SIGKILL) << "was it too fast to be killed?";
  if (GetParam() != SIGKILL) {
    ASSERT_LT(read_report(stopped).cases, read_report(whole).cases) << "it was too fast to be interrupted";
  }
  EXPECT_EQ(attest_program({"run", "--resume", stopped, "--jobs", "2"}).exit_code, code(ExitCode::kKernelWrong));
  EXPECT_EQ(comparable(whole), comparable(stopped));
}
INSTANTIATE_TEST_SUITE_P(Each, Stopped, ::testing::Values(SIGINT, SIGTERM, SIGKILL),
                         [](const auto& info) { return std::string(sigabbrev_np(info.param)); });

TEST(Program, a_torn_journal_is_continued_as_often_as_one_likes) {
  const std::string out = fresh_folder();
  attest_program(small_run(out, {"--jobs", "1"}));
  const nlohmann::json whole = comparable(out);
  const std::string journal = out + "/journal.jsonl";
  for (int i = 0; i < 3; ++i) {
    std::filesystem::resize_file(journal, std::filesystem::file_size(journal) / 2);
    EXPECT_EQ(attest_program({"run", "--resume", out}).exit_code, code(ExitCode::kKernelWrong));
    EXPECT_EQ(comparable(out), whole);
  }
}

TEST(Program, an_interrupted_run_has_passed_nothing_and_says_how_to_go_on) {
  const std::string out = fresh_folder();
  const ProgramRun run = stopped_program({"run", "--variant", "softmax.cpu.fixed_order", "--cases", "2000", "--seed", "1",
                                          "--no-regression", "--out", out},
                                         out, SIGINT);
  EXPECT_EQ(run.exit_code, code(ExitCode::kInterrupted)) << run.output;
  EXPECT_THAT(run.output, HasSubstr("Interrupted before all cases were judged"));
  EXPECT_THAT(run.output, HasSubstr("--resume " + out));
  EXPECT_EQ(run.output.find("All passed"), std::string::npos);
}

/// One case, on which counts_padding fails, and then endless_loop hangs.
std::vector<std::string> hanging_run(const std::string& out, const std::vector<std::string>& more) {
  std::vector<std::string> args{"run",       "--variant", "faulty.softmax.counts_padding", "--variant", "faulty.softmax.endless_loop",
                                "--timeout", "200s",      "--jobs",
                                "1",         "--out",     out,
                                "--no-regression", "--seed", "1"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}
const std::string kPaddedCase = "op=softmax B=1 Hq=1 Hkv=1 Sq=2 Skv=9 D=4 Dv=4 fp32 padding=left seed=3";

TEST(Program, an_interrupt_does_not_wait_for_a_kernel_that_hangs_and_keeps_what_was_found) {
  const std::string out = fresh_folder();
  const auto start = std::chrono::steady_clock::now();
  const ProgramRun run = stopped_program(hanging_run(out, {"--property", "agrees_with_oracle.forward", "--case", kPaddedCase}), out,
                                         SIGTERM, 1, std::chrono::seconds(5));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  EXPECT_EQ(run.exit_code, code(ExitCode::kKernelWrong)) << run.output;
  const CampaignResult result = read_report(out);
  EXPECT_TRUE(result.interrupted);
  ASSERT_EQ(result.cells.size(), 2U);
  EXPECT_EQ(result.cells[0].status, Status::kIncorrect) << run.output;
  EXPECT_EQ(result.cells[1].status, Status::kVacuous) << "it was not given its time: " << run.output;
}

TEST(Program, an_interrupt_ends_the_shrinking_of_a_hang) {
  const std::string out = fresh_folder();
  std::vector<std::string> args = hanging_run(out, {"--property", "returns", "--case", kPaddedCase});
  *std::find(args.begin(), args.end(), "200s") = "2s";  // a candidate then hangs for two seconds, and there are dozens
  const ProgramRun run = stopped_program(args, out, SIGINT, 2, std::chrono::milliseconds(500));
  EXPECT_EQ(run.exit_code, code(ExitCode::kKernelWrong)) << run.output;
  const CampaignResult result = read_report(out);
  EXPECT_EQ(result.cells.back().status, Status::kTimedOut) << run.output;
  EXPECT_LE(result.cells.back().probes, 2) << run.output;
  EXPECT_EQ(lines_of(out + "/journal.jsonl"), 2) << "a resumed run shrinks it";
}

TEST(Program, what_a_run_folder_fixes_is_not_given_again) {
  const std::string out = fresh_folder();
  const std::vector<std::string> args{"run",     "--variant", "softmax.cpu.fixed_order", "--property", "returns",
                                      "--cases", "1",         "--no-regression",         "--out",      out};
  ASSERT_EQ(attest_program(args).exit_code, 0);
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{{"--seed", "1"},
                                                                                    {"--variant", "*"},
                                                                                    {"--op", "softmax"},
                                                                                    {"--property", "*"},
                                                                                    {"--case", "Sq=1"},
                                                                                    {"--cases", "1"},
                                                                                    {"--device", "cpu"},
                                                                                    {"--load", "x.so"},
                                                                                    {"--no-shrink"},
                                                                                    {"--no-regression"},
                                                                                    {"--timeout", "1s"}}) {
    std::vector<std::string> resumed{"run", "--resume", out};
    resumed.insert(resumed.end(), more.begin(), more.end());
    const ProgramRun run = attest_program(resumed);
    EXPECT_EQ(run.exit_code, code(ExitCode::kBadUsage)) << more[0];
    EXPECT_THAT(run.output, HasSubstr(more[0] + " excludes --resume"));
  }
  EXPECT_EQ(attest_program({"run", "--resume", out, "--jobs", "1"}).exit_code, 0);
}

TEST(Program, a_damaged_file_is_named_in_a_sentence_of_our_own) {
  const std::string out = fresh_folder();
  std::filesystem::create_directories(out);
  for (const char* text :
       {"", "{", "[]", "{}", R"({"format": "attest run 1"})", R"({"format": "attest report 1"})", R"({"format": 3})"}) {
    for (const char* name : {"/run.json", "/report.json"}) std::ofstream(out + name) << text;
    for (const ProgramRun& run : {attest_program({"run", "--resume", out}), attest_program({"report", out})}) {
      EXPECT_EQ(run.exit_code, code(ExitCode::kBadUsage)) << text;
      EXPECT_EQ(run.output.find("json.exception"), std::string::npos) << run.output;
      EXPECT_THAT(run.output, HasSubstr(out));
    }
  }
}

TEST(Program, after_a_kernel_that_does_not_return_its_other_laws_are_not_reached) {
  const std::string out = fresh_folder();
  const ProgramRun run = attest_program({"run", "--variant", "faulty.softmax.segfault", "--property", "returns", "--property",
                                         "repeat_run.*", "--cases", "5", "--seed", "1", "--no-shrink", "--out", out});
  EXPECT_EQ(run.exit_code, code(ExitCode::kKernelWrong)) << run.output;
  EXPECT_THAT(run.output, testing::ContainsRegex("repeat_run +not reached\n"));
}

TEST(Program, a_budget_ends_a_run_that_has_judged_cases) {
  const std::string out = fresh_folder();
  const ProgramRun run = attest_program({"run", "--variant", "softmax.cpu.fixed_order", "--property", "returns", "--budget", "1s",
                                         "--seed", "1", "--jobs", "1", "--no-regression", "--out", out});
  EXPECT_EQ(run.exit_code, 0) << run.output;
  const CampaignResult result = read_report(out);
  EXPECT_GT(result.cases, 0);
  EXPECT_EQ(result.cells.front().passed, result.cases);
}

TEST(Program, a_library_brings_a_torch_operator) {
  const std::string out = fresh_folder();
  const ProgramRun run = attest_program({"run", "--load", SKELETON_operator, "--variant", "torch:mine::attention", "--property",
                                         "returns", "--property", "agrees_with_oracle.*", "--cases", "20", "--seed", "1",
                                         "--no-regression", "--out", out});
  EXPECT_EQ(run.exit_code, 0) << run.output;
  const CampaignResult result = read_report(out);
  ASSERT_EQ(result.cells.size(), 3U);
  for (const CellResult& cell : result.cells) EXPECT_GT(cell.passed, 0) << cell.cell.property << run.output;
}

TEST(Program, a_library_brings_a_variant) {
  const std::string out = fresh_folder();
  const ProgramRun run = attest_program({"run", "--load", SKELETON_variant, "--variant", "softmax.cpu.NAME", "--property",
                                         "agrees_with_oracle.forward", "--cases", "20", "--seed", "1", "--no-regression", "--out", out});
  EXPECT_EQ(run.exit_code, 0) << run.output;
  ASSERT_EQ(read_report(out).cells.size(), 1U);
  EXPECT_GT(read_report(out).cells.front().passed, 0) << run.output;
}

TEST(Program, a_run_replays_the_regression_fixtures_first) {
  const std::string out = fresh_folder();
  const ProgramRun run = attest_program({"run", "--variant", "softmax.cpu.fixed_order", "--variant", "faulty.softmax.top_left_causal",
                                         "--property", "agrees_with_oracle.forward", "--cases", "1", "--seed", "1", "--out", out});
  EXPECT_EQ(run.exit_code, code(ExitCode::kKernelWrong)) << run.output;
  const CampaignResult result = read_report(out);
  ASSERT_EQ(result.cells.size(), 2U);
  const CellResult& faulty = result.cells.front();
  EXPECT_NE(faulty.found.fixture.find("fixtures/regression/"), std::string::npos) << to_string(faulty.found);
  EXPECT_EQ(result.cells.back().status, Status::kPass) << result.cells.back().sentence;
  EXPECT_GT(result.cells.back().passed, 10);
}

TEST(Program, a_case_outside_every_domain_is_nothing_ran) {
  const ProgramRun run = attest_program({"run", "--variant", "stickbreaking.cpu.fixed_order", "--case",
                                         "op=softmax B=1 Hq=1 Hkv=1 Sq=2 Skv=2 D=2 fp32", "--out", fresh_folder()});
  EXPECT_EQ(run.exit_code, code(ExitCode::kNothingRan)) << run.output;
}

TEST(Program, a_run_folder_is_never_overwritten) {
  const std::string out = fresh_folder();
  const std::vector<std::string> args{"run",     "--variant", "softmax.cpu.fixed_order", "--property", "returns",
                                      "--cases", "1",         "--no-regression",         "--out",      out};
  EXPECT_EQ(attest_program(args).exit_code, 0);
  const ProgramRun again = attest_program(args);
  EXPECT_EQ(again.exit_code, code(ExitCode::kBadUsage));
  EXPECT_NE(again.output.find("--resume"), std::string::npos) << again.output;
}

TEST(Program, list_prints_names_on_stdout) {
  const ProgramRun run = attest_program({"list", "ops"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.output, "softmax\nstickbreaking\n");
}

}  // namespace
}  // namespace attest
