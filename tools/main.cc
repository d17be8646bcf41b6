// attest: the program.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "build_info.h"
#include "harness/error.h"
#include "tools/check_records.h"
#include "tools/commands.h"

namespace attest {
namespace {

constexpr char kFooter[] =
    "Exit codes: 0 all passed; 1 a kernel is wrong; 2 nothing ran, or nothing passed; 3 bad usage; 4 the harness or the machine "
    "failed; 5 interrupted before all cases were judged.";

int run(int argc, char** argv) {
  check_records();
  CLI::App app{"Attest: finds what the tests of attention kernels cannot see.", "attest"};
  app.footer(kFooter);
  app.set_version_flag("--version", fmt::format("attest {} ({})", kVersion, kCommit));
  app.require_subcommand(1);
  Program program{std::filesystem::read_symlink("/proc/self/exe").string(), 0};
  for (auto add : {add_run, add_list, add_replay, add_shrink, add_report, add_bench, add_audit, add_worker}) add(app, program);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : static_cast<int>(ExitCode::kBadUsage);
  }
  return program.code;
}

}  // namespace
}  // namespace attest

int main(int argc, char** argv) {
  try {
    return attest::run(argc, argv);
  } catch (const attest::Error& e) {
    fmt::print(stderr, "attest: {}\n", e.what());
    return static_cast<int>(e.code());
  } catch (const std::exception& e) {
    fmt::print(stderr, "attest: unexpected failure: {}\n", e.what());
    return static_cast<int>(attest::ExitCode::kHarnessFailed);
  }
}
