// All cases, in child processes: a variant that crashes or breaks the device costs its own row, not the others.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tools/bench/measure.h"

namespace attest::bench {

struct SessionPlan {
  std::vector<Job> jobs;
  Device device = Device::kCuda;
  /// Variants by operator, in the order they are run in.
  std::function<std::vector<const KernelVariant*>(Op op)> variants;
  /// What the machine is; called in the child, which may use the GPU.
  std::function<std::map<std::string, std::string>()> machine;
};

struct SessionListener {
  std::function<void(const std::map<std::string, std::string>& machine)> machine;  // once, first
  std::function<void(const std::vector<Row>& rows)> job_done;                      // in the order of the plan
};

/// Throws NeedsGpu when the device is not there.
void run_session(const SessionPlan& plan, const SessionListener& listener);

class NeedsGpu : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace attest::bench
