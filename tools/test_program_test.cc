#include "tools/test_program.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/process/args.hpp>
#include <boost/process/child.hpp>
#include <boost/process/exe.hpp>
#include <boost/process/io.hpp>
#include <boost/process/pipe.hpp>
#include <filesystem>

namespace attest {

namespace bp = boost::process;

namespace {

namespace fs = std::filesystem;

/// Not shared with the tests of another build, which may run at the same time.
fs::path of_this_process() { return fs::path(testing::TempDir()) / ("attest-tests." + std::to_string(getpid())); }

/// What failed tests wrote is kept.
class Cleaner : public testing::Environment {
  void SetUp() override { fs::create_directories(of_this_process()); }
  void TearDown() override {
    if (!testing::UnitTest::GetInstance()->Failed()) fs::remove_all(of_this_process());
  }
};
[[maybe_unused]] testing::Environment* const cleaner = testing::AddGlobalTestEnvironment(new Cleaner);

}  // namespace

ProgramRun attest_program(const std::vector<std::string>& args) {
  bp::ipstream out;
  bp::child child(bp::exe = std::string(ATTEST_PROGRAM), bp::args = args, (bp::std_out & bp::std_err) > out, bp::std_in < bp::null);
  ProgramRun run;
  run.output.assign(std::istreambuf_iterator<char>(out), {});
  child.wait();
  const int status = child.native_exit_code();
  run.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return run;
}

std::string fresh_folder() {
  std::string name = std::string(testing::UnitTest::GetInstance()->current_test_info()->test_suite_name()) + "." +
                     testing::UnitTest::GetInstance()->current_test_info()->name();
  std::replace(name.begin(), name.end(), '/', '_');
  const fs::path folder = of_this_process() / name;
  fs::remove_all(folder);
  return folder.string();
}

}  // namespace attest
