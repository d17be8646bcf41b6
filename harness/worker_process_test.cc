// Workers that misbehave, each a line of shell with jobs on descriptor 3 and events on 4.
#include "harness/worker_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "harness/error.h"

namespace attest {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr milliseconds kTimeout{20000};
const Cell kCell{"v", "p"};

std::string say(const std::string& line) { return "echo '" + line + "' >&4; "; }
std::string say(const Event& event) { return say(encode(event)); }
std::string say_verdict(Status status) {
  Event event{Event::Kind::kVerdict, kCell};
  event.verdict = {status, "", {}};
  return say(event);
}
const std::string kRead = "read job <&3; ", kStart = say({Event::Kind::kStart, kCell}), kDone = say({Event::Kind::kDone});

/// A path of the running test's own.
std::string own_path(const std::string& ending) {
  return testing::TempDir() + "/attest." + testing::UnitTest::GetInstance()->current_test_info()->name() + ending;
}

std::string removed(const std::string& path) {
  std::filesystem::remove(path);
  return path;
}

Job job() {
  Job job;
  job.source.fixture = "none.h5";
  job.cells = {kCell};
  return job;
}

WorkerProcess stand_in(const std::string& script) { return WorkerProcess({"/bin/bash", {"-c", script}, removed(own_path(".log"))}); }

Verdict last_verdict(const std::string& script, milliseconds timeout = kTimeout) {
  const JobResult result = stand_in(kRead + script).work(job(), timeout);
  EXPECT_TRUE(result.lost);
  return result.verdicts.size() == 1 ? result.verdicts[0].verdict : Verdict{};
}

TEST(WorkerProcess, a_verdict_that_is_given_is_the_verdict) {
  const JobResult result = stand_in(kRead + kStart + say_verdict(Status::kPass) + kDone + "read job <&3").work(job(), kTimeout);
  ASSERT_EQ(result.verdicts.size(), 1U);
  EXPECT_EQ(result.verdicts[0].verdict.status, Status::kPass);
  EXPECT_FALSE(result.lost);
}

TEST(WorkerProcess, a_death_is_described_by_its_signal_or_exit_code_every_time) {
  for (int i = 0; i < 20; ++i) {
    const Verdict signalled = last_verdict(kStart + "kill -SEGV $$");
    EXPECT_EQ(signalled.status, Status::kCrashed);
    EXPECT_THAT(signalled.sentence, HasSubstr("died of signal 11"));
    EXPECT_THAT(last_verdict(kStart + "exit 7").sentence, HasSubstr("ended with exit code 7"));
  }
}

TEST(WorkerProcess, a_death_while_its_pipe_is_closed_already_keeps_its_cause) {
  EXPECT_THAT(last_verdict(kStart + "exec 4>&-; sleep 0.3; kill -ABRT $$").sentence, HasSubstr("signal 6"));
}

TEST(WorkerProcess, one_that_hangs_is_given_up_soon_after_the_user_wants_to_stop) {
  const auto start = std::chrono::steady_clock::now();
  const auto stop = [&] { return std::chrono::steady_clock::now() > start + milliseconds(200); };
  Event first{Event::Kind::kVerdict, kCell};
  first.verdict = {Status::kIncorrect, "", {}};
  const Cell second{"w", "p"};
  Job both = job();
  both.cells.push_back(second);
  const std::string script = kRead + kStart + say(first) + say({Event::Kind::kStart, second}) + "sleep 600";
  WorkerProcess worker({"/bin/bash", {"-c", script}, removed(own_path(".log")), stop});
  const JobResult result = worker.work_and_confirm(both, milliseconds(60000));
  EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(200) + kPatience + milliseconds(2000));
  EXPECT_TRUE(result.given_up);
  ASSERT_EQ(result.verdicts.size(), 1U) << "the kernel that hangs is not blamed";
  EXPECT_EQ(result.verdicts[0].verdict.status, Status::kIncorrect);
}

TEST(WorkerProcess, one_that_answers_in_time_is_heard_though_the_user_wants_to_stop) {
  WorkerProcess worker({"/bin/bash", {"-c", kRead + "sleep 0.1; " + kStart + say_verdict(Status::kPass) + kDone}, removed(own_path(".log")),
                        [] { return true; }});
  const JobResult result = worker.work(job(), kTimeout);
  EXPECT_FALSE(result.given_up);
  ASSERT_EQ(result.verdicts.size(), 1U);
}

TEST(WorkerProcess, one_that_never_stops_talking_is_given_up_too) {
  const std::string script = kRead + "while true; do " + say({Event::Kind::kOracle}) + "sleep 0.01; done";
  WorkerProcess worker({"/bin/bash", {"-c", script}, removed(own_path(".log")), [] { return true; }});
  EXPECT_TRUE(worker.work(job(), kTimeout).given_up);
}

TEST(WorkerProcess, one_that_closes_its_pipe_and_lives_on_is_killed) {
  EXPECT_THAT(last_verdict(kStart + "exec 4>&-; sleep 600").sentence, HasSubstr("signal 9"));
}

TEST(WorkerProcess, what_is_no_event_costs_the_cell_that_is_running_and_nothing_else) {
  const std::vector<std::string> lines = {"garbage", "", "{", "[]", "3", R"({"event":"surprise"})", R"({"event":4})",
                                          R"({"event":"verdict","cell":["v","p"]})", R"({"event":"verdict","cell":["v"]})",
                                          R"({"event":"start","cell":["another","p"]})", R"({"event":"done"}{)",
                                          R"({"event":"done","time":7})"};
  for (const std::string& line : lines) {
    const Verdict verdict = last_verdict(kStart + say(line) + "sleep 600");
    EXPECT_EQ(verdict.status, Status::kCrashed) << line;
    EXPECT_THAT(verdict.sentence, HasSubstr("wrote to the channel of its worker: " + line)) << line;
  }
}

TEST(WorkerProcess, endless_output_without_a_line_is_no_event) {
  EXPECT_THAT(last_verdict(kStart + "cat /dev/zero >&4").sentence, HasSubstr("wrote to the channel of its worker: \\x00\\x00"));
}

TEST(WorkerProcess, what_it_printed_is_shown_without_control_characters) {
  const Verdict verdict = last_verdict(kStart + "printf '\\033[31mhelp\\n'; exit 1");
  EXPECT_THAT(verdict.sentence, HasSubstr("it wrote: \\x1b[31mhelp"));
}

TEST(WorkerProcess, a_death_in_the_oracle_is_no_verdict_on_the_kernel) {
  const Verdict verdict = last_verdict(kStart + say({Event::Kind::kOracle}) + "exit 1");
  EXPECT_EQ(verdict.status, Status::kHarnessError);
  EXPECT_THAT(verdict.sentence, HasSubstr("in the oracle"));
}

/// The first process runs `first`, later ones judge.
JobResult confirmed(const std::string& first, milliseconds timeout) {
  const std::string marker = removed(own_path(".marker"));
  WorkerProcess worker = stand_in(kRead + kStart + "if [ ! -e " + marker + " ]; then : > " + marker + "; " + first + "; fi; " +
                                  say_verdict(Status::kPass) + kDone + "read job <&3");
  return worker.work_and_confirm(job(), timeout);
}

TEST(WorkerProcess, a_kill_or_a_stop_from_outside_is_not_believed_when_it_does_not_happen_again) {
  for (const char* first : {"kill -KILL $$", "kill -STOP $$"}) {
    const JobResult result = confirmed(first, milliseconds(1500));
    ASSERT_EQ(result.verdicts.size(), 1U);
    EXPECT_EQ(result.verdicts[0].verdict.status, Status::kPass) << first;
    std::stringstream log;
    log << std::ifstream(own_path(".log")).rdbuf();
    EXPECT_THAT(log.str(), HasSubstr("judged again: pass")) << first;
  }
}

TEST(WorkerProcess, another_signal_is_believed_at_once) {
  EXPECT_EQ(confirmed("kill -SEGV $$", kTimeout).verdicts.at(0).verdict.status, Status::kCrashed);
}

TEST(WorkerProcess, a_death_that_happens_again_is_believed) {
  const JobResult result = stand_in(kRead + kStart + "kill -KILL $$").work_and_confirm(job(), kTimeout);
  ASSERT_EQ(result.verdicts.size(), 1U);
  EXPECT_THAT(result.verdicts[0].verdict.sentence, HasSubstr("signal 9"));
}

TEST(WorkerProcess, one_that_cannot_be_started_is_an_error_at_once) {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  for (rlim_t files = 3; files < 24; ++files) {
    const rlimit few{files, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    WorkerProcess worker = stand_in(kRead + kStart + "exit 7");
    try {
      worker.work(job(), kTimeout);
    } catch (const Error&) {
    }
    setrlimit(RLIMIT_NOFILE, &before);
  }
  EXPECT_THROW(WorkerProcess({"/no/such/program", {}, removed(own_path(".log"))}).work(job(), kTimeout), Error);
}

}  // namespace
}  // namespace attest
