#include "harness/trial.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <chrono>

#include "harness/error.h"

namespace attest {
namespace {

class Stopwatch {
 public:
  explicit Stopwatch(double& total) : total_(total) {}
  ~Stopwatch() { total_ += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  double& total_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// CUDA and libtorch add general advice to what happened.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// What a kernel's own code throws is the kernel's doing: a LaunchError or an OutOfMemoryError, whatever it was. All that
/// escapes elsewhere is the harness's.
template <class F>
auto blaming_kernel(F&& call) try {
  return call();
} catch (const LaunchError&) {
  throw;
} catch (const OutOfMemoryError&) {
  throw;
} catch (const c10::Error& e) {
  const std::string text = first_line(e.what_without_backtrace());
  const bool memory = dynamic_cast<const c10::OutOfMemoryError*>(&e) != nullptr ||
                      text.find("allocate memory") != std::string::npos || text.find("out of memory") != std::string::npos;
  if (memory) throw OutOfMemoryError(text);
  throw LaunchError(text);
} catch (const std::bad_alloc&) {
  throw OutOfMemoryError("the kernel asked for more memory than there is");
} catch (const std::exception& e) {
  throw LaunchError(std::string("the kernel threw: ") + e.what());
} catch (...) {
  throw LaunchError("the kernel threw something that is no std::exception");
}

const Oracle* affordable_oracle(const Inputs& inputs, std::string& why) {
  why = "no oracle is registered";
  for (const Oracle* oracle : Registry<Oracle>::instance().all()) {
    if (!oracle->domain.ops.contains(inputs.problem.op)) continue;
    const auto excluded = oracle->domain.excludes(inputs);
    if (!excluded) return oracle;
    why = oracle->name + ": " + *excluded;
  }
  return nullptr;
}

/// A promise or a known failure changes what a broken law means.
Verdict qualified(Verdict verdict, const KernelVariant& variant, const Property& property) {
  if (!is_failure(verdict.status)) return verdict;
  const auto known = variant.known_failures.find(property.name);
  if (known != variant.known_failures.end()) {
    verdict.status = Status::kKnownFailure;
    verdict.sentence += " (known: " + known->second + ")";
  } else if (verdict.status == Status::kIncorrect && !variant.promises.contains(property.name)) {
    verdict.status = Status::kNotPromised;
  }
  return verdict;
}

std::optional<std::string> outside(const CaseTrial& trial, SharedCase& shared, const Property& property) {
  const KernelVariant& variant = trial.variant();
  const Inputs& on_cpu = shared.inputs(Device::kCpu);
  const AttentionProblem& problem = on_cpu.problem;
  if (problem.op != variant.op) return fmt::format("{} is for {}", variant.name, name_of(variant.op));
  if (!property.domain.ops.contains(problem.op)) return fmt::format("{} is not a law of {}", property.name, name_of(problem.op));
  const auto check = [&](const CaseDomain& d) { return shared.made_by() ? d.excludes(*shared.made_by()) : d.excludes(on_cpu); };
  if (auto why = check(variant.domain)) return why;
  if (auto why = check(property.domain)) return why;
  if (!variant.refuses) return std::nullopt;
  const Inputs& inputs = trial.inputs();
  return blaming_kernel([&] { return variant.refuses(inputs); });
}

}  // namespace

SharedCase::SharedCase(Inputs cpu_inputs, std::optional<Case> made_by, std::function<void(Event::Kind)> announce)
    : cpu_(std::move(cpu_inputs)), made_by_(std::move(made_by)), announce_(std::move(announce)) {}

const Inputs& SharedCase::inputs(Device device) {
  if (device == Device::kCpu) return cpu_;
  if (!cuda_) {
    Stopwatch watch(time_.harness);
    cuda_ = cpu_.to(Device::kCuda);
  }
  return *cuda_;
}

size_t SharedCase::tiers() {
  if (oracle_ == nullptr) {
    std::string why;
    oracle_ = affordable_oracle(cpu_, why);
    if (oracle_ == nullptr) throw NoOracle("no oracle affords this case (" + why + ")");
    references_.resize(oracle_->tiers.size());
    time_.references.resize(oracle_->tiers.size());
  }
  return references_.size();
}

const Reference& SharedCase::reference(size_t tier) {
  if (tier >= tiers()) throw OracleFailure(fmt::format("{} has no tier {}", oracle_->name, tier));
  std::optional<Reference>& reference = references_[tier];
  if (reference) return *reference;
  announce_(Event::Kind::kOracle);
  Stopwatch watch(time_.oracle);
  try {
    reference = oracle_->evaluate(cpu_, tier);
  } catch (const std::exception& e) {
    throw OracleFailure(fmt::format("{} ({}) failed: {}", oracle_->name, oracle_->tiers[tier], first_line(e.what())));
  }
  reference->oracle = oracle_->name;
  if (references_.size() > 1) reference->oracle += fmt::format(" ({})", oracle_->tiers[tier]);
  ++time_.references[tier];
  announce_(Event::Kind::kKernel);
  return *reference;
}

const Outputs& SharedCase::baseline() {
  if (baseline_) return *baseline_;
  const std::string name = fmt::format("{}.cpu.fixed_order", name_of(cpu_.problem.op));
  const KernelVariant* variant = Registry<KernelVariant>::instance().find(name);
  if (variant == nullptr) throw OracleFailure("the baseline " + name + " is not registered");
  return *(baseline_ = run_each_sequence(cpu_, variant->run));
}

Outputs SharedCase::run(const KernelVariant& variant, const Inputs& inputs) {
  Stopwatch watch(time_.kernel);
  return blaming_kernel([&] {
    Outputs outputs = variant.run(inputs);
    synchronize(variant.device);
    return outputs;
  });
}

const Outputs& CaseTrial::outputs() {
  if (!outputs_) outputs_ = shared_.run(variant_, inputs());
  return *outputs_;
}

bool CaseTrial::refine() {
  if (tier_ + 1 >= shared_.tiers()) return false;
  ++tier_;
  return true;
}

EnumSet<Quantity> CaseTrial::quantities() const {
  EnumSet<Quantity> q = variant_.produces;
  if (property_ != nullptr) q = q & property_->judges;
  return inputs().backward() ? q : q & kForward;
}

void synchronize(Device device) {
  if (device == Device::kCpu) return;
  try {
    c10::impl::VirtualGuardImpl guard(c10::DeviceType::CUDA);
    guard.synchronizeDevice(guard.getDevice().index());
  } catch (const c10::Error& e) {
    throw LaunchError(first_line(e.what_without_backtrace()));
  }
}

Verdict judge_cell(CaseTrial& trial, SharedCase& shared, const Property& property) {
  trial.judge_for(property);
  const auto failed = [](Status status, const std::string& text) { return Verdict{status, text, {}}; };
  Verdict verdict;
  try {
    if (auto why = outside(trial, shared, property)) return failed(Status::kUnsupported, *why);
    if (trial.quantities().empty()) return failed(Status::kUnsupported, "the variant gives nothing that this law judges here");
    verdict = property.check(trial);
    while (verdict.status == Status::kUndecided && trial.refine()) verdict = property.check(trial);
    if (verdict.status == Status::kUndecided) verdict.sentence += fmt::format("; {}: {}", trial.oracle().name, trial.oracle().limit);
  } catch (const NoOracle& e) {
    return failed(Status::kUnsupported, e.what());
  } catch (const OracleFailure& e) {
    return failed(Status::kHarnessError, e.what());
  } catch (const OutOfMemoryError& e) {
    verdict = failed(Status::kOutOfMemory, e.what());
  } catch (const LaunchError& e) {
    verdict = failed(Status::kLaunchError, e.what());
  } catch (const std::exception& e) {
    return failed(Status::kHarnessError, fmt::format("{} itself failed: {}", property.name, first_line(e.what())));
  } catch (...) {
    return failed(Status::kHarnessError, property.name + " itself failed: it threw something that is no std::exception");
  }
  return qualified(std::move(verdict), trial.variant(), property);
}

}  // namespace attest
