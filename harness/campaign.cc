#include "harness/campaign.h"

#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <mutex>
#include <thread>

#include "harness/edit.h"
#include "harness/error.h"
#include "harness/ledger.h"
#include "harness/materialise.h"
#include "harness/plan.h"
#include "harness/record.h"
#include "harness/shrink.h"
#include "harness/tensors.h"
#include "harness/worker_process.h"

namespace attest {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

class Campaign {
 public:
  Campaign(const CampaignOptions& options, const CampaignHooks& hooks, CampaignListener& listener)
      : options_(options),
        hooks_(hooks),
        listener_(listener),
        plan_(options, hooks.has_gpu),
        ledger_(plan_, options.out + "/journal.jsonl") {}

  CampaignResult run() {
    const auto start = steady_clock::now();
    if (options_.budget) stop_at_ = start + *options_.budget;
    listener_.campaign_started(options_.budget ? 0 : plan_.size());
    in_threads([this](WorkerProcess& worker) { judge_cases(worker); });
    CampaignResult result;
    result.interrupted = interrupted() && !stopping() && ledger_.entered() < plan_.size();
    if (interrupted()) ledger_.show_failures(std::move(in_part_));
    if (options_.shrink) {
      to_shrink_ = ledger_.to_shrink();
      in_threads([this](WorkerProcess& worker) { shrink_cells(worker); });
    }
    result.cells = ledger_.conclude();
    result.provenance = options_.provenance;
    result.cases = ledger_.entered();
    result.time = ledger_.time();
    result.seconds = std::chrono::duration<double>(steady_clock::now() - start).count();
    listener_.campaign_finished(result);
    return result;
  }

 private:
  /// Runs `work` in one thread for each job, each with a worker process of its own; the first exception is thrown again.
  void in_threads(const std::function<void(WorkerProcess&)>& work) {
    std::vector<std::thread> threads;
    for (int i = 0; i < options_.jobs; ++i)
      threads.emplace_back([&, i] {
        try {
          WorkerProcess worker = hooks_.make_worker(plan_.needs_cuda() ? Device::kCuda : Device::kCpu, i);
          work(worker);
        } catch (...) {
          std::lock_guard lock(mutex_);
          if (!failure_) failure_ = std::current_exception();
        }
      });
    for (std::thread& t : threads) t.join();
    if (failure_) std::rethrow_exception(failure_);
  }

  bool stopping() const { return failure_ || (stop_at_ && steady_clock::now() >= *stop_at_); }

  /// The next source that is not judged yet, and its open cells; false when there is none.
  bool take(int64_t& number, Source& source, std::vector<Cell>& cells) {
    std::lock_guard lock(mutex_);
    while (next_ < plan_.size() && ledger_.is_done(next_)) ++next_;
    if (next_ >= plan_.size() || stopping() || interrupted()) return false;
    number = next_++;
    source = plan_.source(number);
    cells = open_cells(source);
    ledger_.begin(number, source);
    return true;
  }

  /// `returns` is judged as long as any cell of its variant is open, though it may be closed itself: where a kernel does not
  /// return, no other law says anything.
  std::vector<Cell> open_cells(const Source& source) const {
    std::vector<Cell> cells;
    std::optional<Cell> gate;
    for (size_t i : plan_.cells_for(source)) {
      const Cell& cell = plan_.cells()[i].cell;
      if (gate && gate->variant != cell.variant) gate.reset();
      if (cell.property == "returns") gate = cell;
      if (!ledger_.is_open(i)) continue;
      if (gate && cell.property != "returns") cells.push_back(*gate);
      gate.reset();
      cells.push_back(cell);
    }
    return cells;
  }

  void judge_cases(WorkerProcess& worker) {
    int64_t number = 0;
    Source source;
    std::vector<Cell> cells;
    while (take(number, source, cells)) {
      CaseResult result{number, source, {}, {}};
      const bool whole = judge(worker, source, cells, result);
      std::lock_guard lock(mutex_);
      if (!whole) return in_part_.push_back(std::move(result));
      const int64_t done = ledger_.enter(std::move(result));
      listener_.case_finished(done, ledger_.failing());
    }
  }

  /// What a lost worker left is given to a fresh one; a variant that took its process with it is not tried again here. False where an
  /// interrupt left no time for all of it.
  bool judge(WorkerProcess& worker, const Source& source, std::vector<Cell> cells, CaseResult& result) {
    while (!cells.empty()) {
      JobResult part = worker.work_and_confirm({source, cells, ""}, options_.timeout);
      result.time += part.time;
      if (!part.lost || part.verdicts.empty()) cells.clear();
      for (JobResult::CellVerdict& v : part.verdicts) {
        std::erase(cells, v.cell);
        result.verdicts.push_back(std::move(v));
      }
      if (part.given_up) return false;
      if (cells.empty()) return true;
      const JobResult::CellVerdict& last = result.verdicts.back();
      const bool dead = is_failure(last.verdict.status) || last.verdict.status == Status::kHarnessError;
      // The worker skips what follows a failed `returns`, so those before the lost cell were judged or skipped on purpose.
      std::erase_if(cells, [&](const Cell& c) { return dead ? c.variant <= last.cell.variant : c.variant < last.cell.variant; });
    }
    return true;
  }

  void shrink_cells(WorkerProcess& worker) {
    while (true) {
      size_t index = 0;
      CellResult cell;
      {
        std::lock_guard lock(mutex_);
        if (to_shrink_.empty() || failure_ || interrupted()) return;
        index = to_shrink_.back();
        to_shrink_.pop_back();
        cell = ledger_.cell(index);
      }
      const bool whole = shrink_cell(worker, plan_.cells()[index], cell);
      std::lock_guard lock(mutex_);
      whole ? ledger_.enter_minimum(cell) : ledger_.show_minimum(cell);
      listener_.counterexample_found(cell);
    }
  }

  /// False where an interrupt has ended it.
  bool shrink_cell(WorkerProcess& worker, const PlannedCell& planned, CellResult& cell) {
    const std::string folder = fmt::format("fixtures/{}/{}", planned.cell.variant, planned.cell.property);
    std::filesystem::create_directories(options_.out + "/" + folder);
    cell.fixture = options_.out + "/" + folder + "/1.h5";
    cell.load = options_.load;
    const auto judged = [&, probes = int64_t{0}](const Source& source, bool final) mutable {
      tell_shrinking(planned.cell, ++probes);
      return probe(worker, planned.cell, source, final, cell.fixture);
    };
    const ShrinkResult minimum = shrink({planned.cell, cell.source, cell.worst, planned.domain, 2000, std::chrono::seconds(180),
                                         judged, [&](const Source& source) { return inputs_of(source); },
                                         [&] { return interrupted(); }});
    cell.source = minimum.minimum;
    cell.worst = minimum.verdict;
    cell.sentence = minimum.verdict.sentence;
    cell.shrinks = minimum.shrinks;
    cell.probes = minimum.probes;
    if (minimum.interrupted) keep_record(cell);
    return !minimum.interrupted;
  }

  /// Of a minimum that may have been given no time to write one, or to say how it ended.
  void keep_record(CellResult& cell) {
    try {
      hooks_.amend_record(cell.fixture, cell.worst);
    } catch (const std::exception&) {
      cell.fixture.clear();
    }
  }

  void tell_shrinking(const Cell& cell, int64_t probes) {
    std::lock_guard lock(mutex_);
    listener_.shrinking(cell, probes);
  }

  Verdict probe(WorkerProcess& worker, const Cell& cell, const Source& source, bool final, const std::string& fixture) {
    const JobResult result = final ? worker.work_and_confirm({source, {cell}, fixture}, options_.timeout)
                                   : worker.work({source, {cell}, ""}, std::min(options_.timeout, kProbeTimeout));
    if (result.verdicts.empty()) return {Status::kHarnessError, "the worker gave no verdict", {}};
    Verdict verdict = result.verdicts.back().verdict;
    const bool never_returned = verdict.status == Status::kCrashed || verdict.status == Status::kTimedOut;
    if (final && never_returned) hooks_.amend_record(fixture, verdict);
    return verdict;
  }

  Inputs inputs_of(const Source& source) const {
    Inputs inputs = source.made_by ? materialise(*source.made_by) : hooks_.load_record(source.fixture).inputs;
    for (const std::string& edit : source.edits) inputs = apply_edit(inputs, edit);
    return inputs;
  }

  bool interrupted() const { return hooks_.interrupted && hooks_.interrupted(); }

  const CampaignOptions& options_;
  const CampaignHooks& hooks_;
  CampaignListener& listener_;
  Plan plan_;
  std::mutex mutex_;  // guards all below, and calls to the listener
  Ledger ledger_;
  int64_t next_ = 0;
  std::vector<CaseResult> in_part_;  // what an interrupt has cut short
  std::vector<size_t> to_shrink_;
  std::exception_ptr failure_;
  std::optional<steady_clock::time_point> stop_at_;
};

}  // namespace

CampaignResult run_campaign(const CampaignOptions& options, const CampaignHooks& hooks, CampaignListener& listener) {
  return Campaign(options, hooks, listener).run();
}

}  // namespace attest
