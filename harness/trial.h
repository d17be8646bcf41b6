// The one implementation of Trial: shares a case's reference between variants and a variant's outputs between properties.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "harness/job.h"
#include "harness/oracle.h"
#include "harness/property.h"
#include "harness/reference.h"
#include "harness/tensors.h"

namespace attest {

/// Thrown by Trial::reference() when no oracle affords the case: the verdict *unsupported*.
class NoOracle : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Thrown by Trial when the *oracle or harness* fails, so that the kernel is not blamed.
class OracleFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What all trials of one case share.
class SharedCase {
 public:
  /// `announce` is told when control passes to an oracle (kOracle) and back to a kernel (kKernel).
  SharedCase(Inputs cpu_inputs, std::optional<Case> made_by, std::function<void(Event::Kind)> announce);

  const Inputs& inputs(Device device);
  /// Of the oracle's tier `tier`; evaluated once. Throws NoOracle when no oracle affords the case.
  const Reference& reference(size_t tier);
  size_t tiers();  // of that oracle
  const Oracle& oracle() { return tiers(), *oracle_; }
  const Outputs& baseline();
  const std::optional<Case>& made_by() const { return made_by_; }
  Outputs run(const KernelVariant& variant, const Inputs& inputs);
  const TimeShare& time() const { return time_; }

 private:
  Inputs cpu_;
  std::optional<Inputs> cuda_;
  std::optional<Case> made_by_;
  std::function<void(Event::Kind)> announce_;
  const Oracle* oracle_ = nullptr;
  std::vector<std::optional<Reference>> references_;  // by tier
  std::optional<Outputs> baseline_;
  TimeShare time_;
};

class CaseTrial : public Trial {
 public:
  CaseTrial(SharedCase& shared, const KernelVariant& variant) : shared_(shared), variant_(variant) {}

  /// From the oracle's cheapest tier on.
  void judge_for(const Property& property) { property_ = &property, tier_ = 0; }
  /// Goes to the oracle's next tier; false when there is none.
  bool refine();
  const Oracle& oracle() { return shared_.oracle(); }
  const KernelVariant& variant() const override { return variant_; }
  const Inputs& inputs() const override { return shared_.inputs(variant_.device); }
  const Outputs& outputs() override;
  const Reference& reference() override { return shared_.reference(tier_); }
  const Outputs& baseline() override { return shared_.baseline(); }
  Outputs run(const Inputs& inputs) override { return shared_.run(variant_, inputs); }
  EnumSet<Quantity> quantities() const override;
  /// The shared outputs if the variant has been run, else null.
  const Outputs* outputs_so_far() const { return outputs_ ? &*outputs_ : nullptr; }

 private:
  SharedCase& shared_;
  const KernelVariant& variant_;
  const Property* property_ = nullptr;
  size_t tier_ = 0;
  std::optional<Outputs> outputs_;
};

/// Waits for the device; throws LaunchError with the CUDA text when its context is broken.
void synchronize(Device device);

/// Judges one cell: domains, refusal, the law, promises, known failures; turns what the kernel throws into a verdict on
/// it, and what the law or the oracle throws into a harness error. While
/// the reference's radius leaves the verdict undecided, the law is judged again with the oracle's next tier (Ziv's strategy:
/// A. Ziv, ACM TOMS 17(3), 1991).
Verdict judge_cell(CaseTrial& trial, SharedCase& shared, const Property& property);

}  // namespace attest
