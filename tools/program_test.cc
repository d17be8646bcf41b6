// The program as a user meets it: exit codes, sentences, determinism, resuming.
#include <gtest/gtest.h>
#include <signal.h>

#include <boost/process/args.hpp>
#include <boost/process/child.hpp>
#include <boost/process/exe.hpp>
#include <boost/process/io.hpp>
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

int code(ExitCode c) { return static_cast<int>(c); }

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

TEST(Program, a_killed_run_is_resumed_to_the_report_it_would_have_given) {
  const std::string whole = fresh_folder() + "-whole", killed = fresh_folder() + "-killed";
  std::filesystem::remove_all(whole);
  std::filesystem::remove_all(killed);
  attest_program(small_run(whole, {"--jobs", "2"}));
  bp::child child(bp::exe = std::string(ATTEST_PROGRAM), bp::args = small_run(killed, {"--jobs", "2"}),
                  (bp::std_out & bp::std_err) > bp::null);
  const auto journal = [&] {
    std::ifstream file(killed + "/journal.jsonl");
    return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
  };
  for (int i = 0; i < 3000 && journal() < 12; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  kill(child.id(), SIGKILL);
  child.wait();
  ASSERT_GE(journal(), 12);
  ASSERT_FALSE(std::filesystem::exists(killed + "/report.json")) << "it was too fast to be killed";
  EXPECT_EQ(attest_program({"run", "--resume", killed, "--jobs", "2"}).exit_code, code(ExitCode::kKernelWrong));
  EXPECT_EQ(comparable(whole), comparable(killed));
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
