// For tests: runs the real program and collects what it prints.
#pragma once

#include <string>
#include <vector>

#include "harness/error.h"

namespace attest {

struct ProgramRun {
  int exit_code = -1;   // 128 + n after signal n
  std::string output;   // stdout and stderr
};

inline int code(ExitCode c) { return static_cast<int>(c); }

/// Runs `attest` with these arguments and waits.
ProgramRun attest_program(const std::vector<std::string>& args);

/// The name of a folder that isn't there yet, of the running test's own.
std::string fresh_folder();

}  // namespace attest
