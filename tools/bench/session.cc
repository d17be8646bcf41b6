#include "tools/bench/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "harness/error.h"
#include "harness/tensors.h"
#include "tools/bench/isolate.h"

namespace attest::bench {
namespace {

using nlohmann::json;

/// What the parent knows; the child starts from a copy.
class Session {
 public:
  Session(const SessionPlan& plan, const SessionListener& listener) : plan_(plan), listener_(listener) {}

  void run() {
    while (next_ < plan_.jobs.size()) {
      trying_.clear();
      const size_t known = rows_.size(), job = next_;
      const std::string ended =
          in_child([this](const Emit& emit) { work(emit); }, [this](const std::string& line) { hear(json::parse(line)); });
      if (no_gpu_) throw NeedsGpu(*no_gpu_);
      if (next_ == plan_.jobs.size()) return;
      blame(ended);
      if (next_ == job && rows_.size() == known) throw Error(fmt::format("the measuring process ended early: {}", ended));
    }
  }

 private:
  /// In the child.
  void work(const Emit& emit) {
    if (plan_.device == Device::kCuda)
      if (auto why = load_cuda()) return emit(json{{"no_gpu", *why}}.dump());
    poison_fresh(false);
    if (!told_machine_) emit(json{{"machine", plan_.machine()}}.dump());
    const Timer timer = timer_of(plan_.device);
    const Listener listener{[&](const std::string& variant) {
                              emit(json{{"trying", variant}}.dump());
                            },
                            [&](const Row& row) {
                              emit(json{{"row", encode(row)}}.dump());
                            }};
    for (; next_ < plan_.jobs.size(); ++next_) {
      const Job& job = plan_.jobs[next_];
      measure(job, remaining(job), timer, listener);
      emit(json{{"done", next_}}.dump());
      rows_.clear();
    }
  }

  /// Variants without a row.
  std::vector<const KernelVariant*> remaining(const Job& job) const {
    auto variants = plan_.variants(job.bench_case.problem.op);
    std::erase_if(variants, [&](const KernelVariant* v) { return has_row(v->name); });
    return variants;
  }

  bool has_row(const std::string& variant) const {
    return std::any_of(rows_.begin(), rows_.end(), [&](const Row& row) { return row.variant == variant; });
  }

  void hear(const json& line) {
    if (line.contains("no_gpu")) {
      no_gpu_ = line.at("no_gpu").get<std::string>();
    } else if (line.contains("machine")) {
      told_machine_ = true;
      listener_.machine(line.at("machine").get<std::map<std::string, std::string>>());
    } else if (line.contains("trying")) {
      line.at("trying").get_to(trying_);
    } else if (line.contains("row")) {
      rows_.push_back(decode_row(line.at("row").get<std::string>()));
    } else if (line.contains("done")) {
      finish_job();
    }
  }

  void finish_job() {
    std::sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) { return a.variant < b.variant; });
    listener_.job_done(rows_);
    rows_.clear();
    trying_.clear();
    ++next_;
  }

  /// The child is gone before its time: whatever ran last and has no row is to blame.
  void blame(const std::string& ended) {
    if (trying_.empty() || has_row(trying_)) return;
    const Job& job = plan_.jobs[next_];
    rows_.push_back({job.bench_case, job.pass, trying_, Outcome::kCrashed, fmt::format("it ended its process: {}", ended), {}});
  }

  const SessionPlan& plan_;
  const SessionListener& listener_;
  size_t next_ = 0;
  std::vector<Row> rows_;  // of job next_
  std::string trying_;     // what runs now
  bool told_machine_ = false;
  std::optional<std::string> no_gpu_;
};

}  // namespace

void run_session(const SessionPlan& plan, const SessionListener& listener) { Session(plan, listener).run(); }

}  // namespace attest::bench
