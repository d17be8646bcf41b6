// A kernel under test. One file under kernels/ registers one.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "harness/case_domain.h"
#include "harness/contract.h"
#include "harness/registry.h"

namespace attest {

struct Inputs;
struct Outputs;

struct KernelVariant {
  std::string name;     // op.device-or-library.what, e.g. softmax.cuda.fixed_order
  Op op = Op::kSoftmax;
  Device device = Device::kCpu;
  std::string summary;  // one line
  CaseDomain domain;
  EnumSet<Quantity> produces = EnumSet<Quantity>::all();
  ToleranceContract contract;
  /// Names of the properties the variant promises; a failing one outside this set is reported, not failed.
  std::set<std::string> promises;
  /// Property name → sentence with a reference: a failure known and accepted for now.
  std::map<std::string, std::string> known_failures;
  /// In kernels/faulty/: the property that must catch it. Such variants run only when named.
  std::string faulty_caught_by;
  /// Narrows the domain where a plain value can't (e.g. a library's own can_use); the reason, or nothing.
  std::function<std::optional<std::string>(const Inputs&)> refuses;
  /// Inputs lie on `device`. Forward only when !inputs.backward(). Throws LaunchError, OutOfMemoryError.
  std::function<Outputs(const Inputs&)> run;
};

}  // namespace attest
