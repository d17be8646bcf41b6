#include "harness/worker.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <set>

#include "harness/edit.h"
#include "harness/error.h"
#include "harness/materialise.h"
#include "harness/printable.h"
#include "harness/trial.h"

namespace attest {
namespace {

void send(int fd, const Event& event) {
  const std::string line = encode(event) + "\n";
  for (size_t done = 0; done < line.size();) {
    const ssize_t n = write(fd, line.data() + done, line.size() - done);
    if (n <= 0) throw Error("the parent process is gone");
    done += static_cast<size_t>(n);
  }
}

/// Without a GPU context (which reserves address space freely) a kernel that asks for more than the machine has is refused
/// at once, instead of being killed when it touches it.
void limit_address_space() {
  const int64_t bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  rlimit limit{static_cast<rlim_t>(bytes), static_cast<rlim_t>(bytes)};
  setrlimit(RLIMIT_AS, &limit);
}

Record blank_record(const Job& job, const Inputs& inputs, const std::map<std::string, std::string>& provenance) {
  const KernelVariant* variant = Registry<KernelVariant>::instance().find(job.cells.back().variant);
  Record record;
  record.inputs = inputs;
  record.made_by = job.source.made_by;
  record.edits = job.source.edits;
  record.variant = job.cells.back().variant;
  record.property = job.cells.back().property;
  record.verdict = {Status::kCrashed, "the kernel never returned", {}};
  record.provenance = provenance;
  if (variant == nullptr) return record;
  record.contract = to_string(variant->contract.tolerance) + ": " + variant->contract.reason;
  record.provenance["device"] = name_of(variant->device);
  return record;
}

class Worker {
 public:
  Worker(const WorkerOptions& options, const RecordStore& store) : options_(options), store_(store) {}

  /// False when the worker must end itself.
  bool work(const Job& job) {
    const auto start = std::chrono::steady_clock::now();
    std::optional<SharedCase> made;
    try {
      made.emplace(share(job.source));
    } catch (const std::exception& e) {
      return refuse(job, e.what());
    }
    SharedCase& shared = *made;
    if (!job.record.empty()) store_.save(job.record, blank_record(job, shared.inputs(Device::kCpu), options_.provenance));
    std::map<std::string, CaseTrial> trials;
    std::set<std::string> broken;  // variants that do not return on this case: no other law says anything then
    for (const Cell& cell : job.cells) {
      if (poisoned_) break;  // the parent gives what is left to a fresh worker
      if (broken.contains(cell.variant)) continue;
      const Status status = judge(job, cell, shared, trials);
      if (cell.property == "returns" && is_failure(status)) broken.insert(cell.variant);
    }
    Event done{Event::Kind::kDone};
    done.time = shared.time();
    const double total = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    done.time.harness = total - done.time.oracle - done.time.kernel;
    if (poisoned_) done.kind = Event::Kind::kPoisoned;
    send(options_.out, done);
    return !poisoned_;
  }

 private:
  /// The inputs could not be made: no kernel is to blame.
  bool refuse(const Job& job, const std::string& why) {
    for (const Cell& cell : job.cells) {
      Event event{Event::Kind::kVerdict, cell};
      event.verdict = {Status::kHarnessError, printable("its inputs could not be made: " + why.substr(0, why.find('\n'))), {}};
      send(options_.out, event);
    }
    send(options_.out, {Event::Kind::kDone});
    return true;
  }

  SharedCase share(const Source& source) const {
    Inputs inputs = source.made_by ? materialise(*source.made_by) : store_.load(source.fixture).inputs;
    std::optional<Case> made_by = source.made_by;
    for (const std::string& edit : source.edits) inputs = apply_edit(inputs, edit);
    if (!source.edits.empty() && made_by && !(made_by->problem == inputs.problem)) made_by.reset();
    return SharedCase(std::move(inputs), std::move(made_by), [this](Event::Kind kind) { send(options_.out, {kind}); });
  }

  Status judge(const Job& job, const Cell& cell, SharedCase& shared, std::map<std::string, CaseTrial>& trials) {
    send(options_.out, {Event::Kind::kStart, cell});
    Event event{Event::Kind::kVerdict, cell};
    event.verdict = verdict_of(cell, shared, trials);
    event.verdict.sentence = printable(event.verdict.sentence);
    if (!job.record.empty() && cell == job.cells.back()) keep(job, cell, shared, trials, event.verdict);
    send(options_.out, event);
    return event.verdict.status;
  }

  Verdict verdict_of(const Cell& cell, SharedCase& shared, std::map<std::string, CaseTrial>& trials) {
    const KernelVariant* variant = Registry<KernelVariant>::instance().find(cell.variant);
    const Property* property = Registry<Property>::instance().find(cell.property);
    if (variant == nullptr || property == nullptr)
      return {Status::kHarnessError, fmt::format("{} × {} is not registered", cell.variant, cell.property), {}};
    CaseTrial& trial = trials.try_emplace(cell.variant, shared, *variant).first->second;
    Verdict verdict = judge_cell(trial, shared, *property);
    const bool may_be_broken = verdict.status == Status::kLaunchError || verdict.status == Status::kKnownFailure ||
                               verdict.status == Status::kHarnessError;
    if (options_.cuda && may_be_broken) poisoned_ = context_is_broken();
    return verdict;
  }

  static bool context_is_broken() {
    try {
      synchronize(Device::kCuda);
      at::zeros({1}, at::TensorOptions().device(at::kCUDA)).cpu();
      return false;
    } catch (const std::exception&) {
      return true;
    }
  }

  void keep(const Job& job, const Cell& cell, SharedCase& shared, std::map<std::string, CaseTrial>& trials,
            const Verdict& verdict) {
    Record record = blank_record(job, shared.inputs(Device::kCpu), options_.provenance);
    record.verdict = verdict;
    const auto trial = trials.find(cell.variant);
    if (!poisoned_ && trial != trials.end() && trial->second.outputs_so_far() != nullptr)
      record.actual = trial->second.outputs_so_far()->cpu();
    try {
      // The second tier where there is one: what is kept should be narrow.
      record.reference = shared.reference(std::min<size_t>(1, shared.tiers() - 1));
    } catch (const NoOracle&) {  // the record says so by having none
    } catch (const OracleFailure&) {
    }
    store_.save(job.record, record);
  }

  const WorkerOptions& options_;
  const RecordStore& store_;
  bool poisoned_ = false;
};

}  // namespace

int run_worker(const WorkerOptions& options, const RecordStore& store) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpgid(0, 0);  // so that the parent can end what a kernel forks, too
  signal(SIGINT, SIG_IGN);  // an interrupt goes to the parent, which ends its workers
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  at::set_num_threads(options.threads);
  if (options.cuda) {
    if (auto why = load_cuda()) throw Error(*why);
  } else {
    limit_address_space();
  }
  Worker worker(options, store);
  FILE* in = fdopen(options.in, "r");
  if (in == nullptr) throw Error("a worker is started by attest itself, with its two pipes");
  char* line = nullptr;
  size_t capacity = 0;
  while (getline(&line, &capacity, in) > 0)
    if (!worker.work(decode_job(line))) break;
  free(line);
  return 0;
}

}  // namespace attest
