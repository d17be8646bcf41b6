// Misuse or a failing machine. A kernel being wrong is never an exception: it is a Verdict.
#pragma once

#include <stdexcept>
#include <string>

namespace attest {

/// Exit codes of the `attest` program. Scripts rely on them; they never change meaning.
enum class ExitCode : int {
  kAllPassed = 0,
  kKernelWrong = 1,
  kNothingRan = 2,     // or nothing of what ran passed
  kBadUsage = 3,
  kHarnessFailed = 4,  // Attest, the machine or a file failed; says nothing about any kernel
  kInterrupted = 5,    // before all cases were judged, and no kernel was found wrong until then
};

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& sentence, ExitCode code = ExitCode::kHarnessFailed)
      : std::runtime_error(sentence), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

/// Bad input from the user: a flag, a case, a file. The sentence says what, where and how to go on.
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& sentence) : Error(sentence, ExitCode::kBadUsage) {}
};

/// A kernel that could not be launched or that broke the device: the verdict *launch error*.
class LaunchError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A kernel that asked for more memory than there is: the verdict *out of memory*.
class OutOfMemoryError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace attest
