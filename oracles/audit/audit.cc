#include "oracles/audit/audit.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "oracles/group_data.h"

namespace attest {
namespace {

class Audit {
 public:
  Audit(const AuditPlan& plan, const std::function<void(int64_t)>& progress)
      : plan_(plan), progress_(progress), cases_(audit_cases(plan.elements, plan.seed, plan.sizes)),
        misses_(cases_.size()) {}

  AuditResult run() {
    std::vector<std::thread> threads;
    for (int n = 0; n < plan_.jobs; ++n) threads.emplace_back([this] { work(); });
    for (std::thread& thread : threads) thread.join();
    if (failure_) std::rethrow_exception(failure_);
    for (size_t n = 0; n < cases_.size(); ++n)
      for (const AuditMiss& miss : misses_[n]) result_.findings.push_back({cases_[n].inputs, miss});
    result_.cases = static_cast<int64_t>(cases_.size());
    return std::move(result_);
  }

 private:
  void work() {
    try {
      for (size_t n = next_++; n < cases_.size() && !failed_; n = next_++) {
        const GroupData data = group_data(cases_[n].inputs);
        add(n, judge(data.problem(), plan_.tiers, plan_.bits));
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failed_.exchange(true)) failure_ = std::current_exception();
    }
    end_judging_thread();
  }

  void add(size_t n, const Judgement& judgement) {
    const std::lock_guard lock(mutex_);
    const AuditCase& c = cases_[n];
    for (size_t t = 0; t < plan_.tiers.size(); ++t)
      for (const Quantity quantity : EnumSet<Quantity>::all().members())
        result_.cells[{c.inputs.problem.op, plan_.tiers[t].name, c.regime, quantity}].merge(
            judgement.tiers[t][static_cast<size_t>(quantity)]);
    misses_[n] = judgement.misses;
    result_.elements += judgement.elements;
    if (progress_) progress_(result_.elements);
  }

  const AuditPlan& plan_;
  const std::function<void(int64_t)>& progress_;
  const std::vector<AuditCase> cases_;
  std::vector<std::vector<AuditMiss>> misses_;  // by case
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::exception_ptr failure_;
  AuditResult result_;
};

}  // namespace

AuditResult audit(const AuditPlan& plan, const std::function<void(int64_t)>& progress) { return Audit(plan, progress).run(); }

}  // namespace attest
