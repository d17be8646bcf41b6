// What became of every cell so far. Cases are entered in order, whatever order they finish in; a failing cell is closed, and
// what later cases said of it is dropped. Everything entered is in the journal of the run folder first, so that a killed run
// continues; a torn last line is cut off.
#pragma once

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/campaign.h"
#include "harness/plan.h"
#include "harness/worker_process.h"

namespace attest {

struct CaseResult {
  int64_t number = 0;
  Source source;
  std::vector<JobResult::CellVerdict> verdicts;
  TimeShare time;
};

class Ledger {
 public:
  /// Reads what the journal holds, then appends to it.
  Ledger(const Plan& plan, const std::string& journal_path);

  /// Written down before a case is run.
  void begin(int64_t number, const Source& source);
  /// A judged case. Returns how many cases have been entered in order by now.
  int64_t enter(CaseResult result);
  void enter_minimum(const CellResult& cell);
  /// For the report of a run that is interrupted, and not into the journal, since a resumed run finds them in their turn: a minimum that
  /// may not be the smallest, and failures of cases that were judged in part, or before an earlier one. Nothing is entered after them.
  void show_minimum(const CellResult& cell) { results_[index_.at(cell.cell)] = cell; }
  void show_failures(std::vector<CaseResult> in_part);

  bool is_done(int64_t number) const { return number < next_ || pending_.contains(number); }
  bool is_open(size_t cell) const { return !closed_[cell]; }
  int64_t entered() const { return next_; }
  int64_t failing() const;
  /// Cells with a failure that has not been shrunk.
  std::vector<size_t> to_shrink() const;
  const CellResult& cell(size_t index) const { return results_[index]; }
  const TimeShare& time() const { return time_; }
  void add_time(const TimeShare& time) { time_ += time; }

  /// Each cell's status as a whole.
  std::vector<CellResult> conclude() const;

 private:
  void replay(const std::string& path);
  /// False for a line that is none of ours.
  bool read_entry(const std::string& line);
  void append(const std::string& line);
  void commit(const CaseResult& result);
  /// Cells that the case was for and that have no verdict on it: the kernel was lost, or did not return, before them.
  void note_passed_over(const CaseResult& result);
  void commit_verdict(size_t cell, const CaseResult& result, const Verdict& verdict);
  void retire(const std::string& variant, const std::string& why);

  const Plan& plan_;
  std::map<Cell, size_t> index_;
  std::vector<CellResult> results_;
  std::vector<bool> closed_, shrunk_, passed_over_;
  std::map<int64_t, CaseResult> pending_;  // judged, but an earlier one is not
  std::map<std::string, int> deaths_;      // variant → cases on which its process died
  int64_t next_ = 0;
  TimeShare time_;
  std::unique_ptr<FILE, int (*)(FILE*)> journal_{nullptr, fclose};
};

}  // namespace attest
