// The parent's side of a worker: a child process that answers jobs, or dies, or says nothing in time.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/job.h"

namespace attest {

struct WorkerCommand {
  std::string program;             // the attest executable
  std::vector<std::string> args;   // worker --in 3 --out 4 …
  std::string log;                 // where its stdout and stderr go (appended)
  std::function<bool()> stop{};    // asked while a job is waited for; once true, what has no answer within kPatience is given up
};
inline constexpr std::chrono::milliseconds kPatience{500};

/// How one job ended.
struct JobResult {
  struct CellVerdict {
    Cell cell;
    Verdict verdict;
  };
  std::vector<CellVerdict> verdicts;  // in the order of the job's cells; may be a prefix when `lost`
  TimeShare time;
  bool lost = false;                  // the worker died, hung or was poisoned: the cells after the last verdict were not run
  bool doubtful = false;              // the last verdict is a hang or a death by SIGKILL, which the machine may have caused
  bool given_up = false;              // `stop` said so: likewise, and the worker is gone; no verdict blames the kernel for that
};

class WorkerProcess {
 public:
  explicit WorkerProcess(WorkerCommand command);
  ~WorkerProcess();  // kills it
  WorkerProcess(WorkerProcess&&) noexcept;
  WorkerProcess& operator=(WorkerProcess&&) noexcept;

  /// Sends `job` and collects its verdicts. `timeout` is for each cell, and for the oracle apart. A death or a hang becomes the
  /// verdict of the cell that was running; the process is then gone and the next call starts a fresh one.
  JobResult work(const Job& job, std::chrono::milliseconds timeout);
  /// Likewise, but a doubtful verdict gives way to that of a second try in a fresh process; the log tells of both.
  JobResult work_and_confirm(const Job& job, std::chrono::milliseconds timeout);

 private:
  JobResult work_once(const Job& job, std::chrono::milliseconds timeout);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace attest
