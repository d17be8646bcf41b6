// The parent's record of one job: what the events of its worker have said so far.
#pragma once

#include <optional>
#include <string>

#include "harness/error.h"
#include "harness/worker_process.h"

namespace attest {

/// A worker died, or was found dead, before it gave a verdict.
class DiedIdle : public Error {
 public:
  using Error::Error;
};

/// What the events of one job have said so far.
class Hearing {
 public:
  explicit Hearing(const Job& job) : job_(job) {}

  bool done() const { return done_; }
  JobResult& result() { return result_; }
  /// Takes an event in; false for a line that no worker of ours sends.
  bool hear(const std::string& line);
  /// The process is gone: that is the verdict of the cell that it was at.
  /// Throws DiedIdle when no cell was reached.
  void lose(Status status, std::string sentence, bool doubtful);

 private:
  bool is_of_job(const Cell& cell) const;

  const Job& job_;
  JobResult result_;
  std::optional<Cell> running_;
  bool in_oracle_ = false, done_ = false;
};

}  // namespace attest
