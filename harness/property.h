// A law. One file under properties/ registers one.
#pragma once

#include <functional>
#include <string>

#include "harness/case_domain.h"
#include "harness/registry.h"
#include "harness/verdict.h"
#include "harness/variant.h"

namespace attest {

struct Reference;

/// One variant on one case, as a property sees it. Everything is computed on first use and shared.
class Trial {
 public:
  virtual ~Trial() = default;
  virtual const KernelVariant& variant() const = 0;
  virtual const Inputs& inputs() const = 0;            // on the variant's device
  virtual const Outputs& outputs() = 0;                // variant().run(inputs()), run once
  virtual const Reference& reference() = 0;            // of the tier at hand; one per case, shared by all variants
  virtual const Outputs& baseline() = 0;               // the op's cpu.fixed_order, for times_baseline contracts
  /// Runs the variant on other inputs made from these, and waits for the device.
  virtual Outputs run(const Inputs& inputs) = 0;
  /// The quantities to judge: those this variant produces here (gradients only with a dout) and the property judges.
  virtual EnumSet<Quantity> quantities() const = 0;
};

/// Forward and gradients are judged apart: most laws register once for each, as `batch_size.forward` (out, lse/rem) and
/// `batch_size.gradients` (dq, dk, dv), from one file.
struct Property {
  std::string name;             // e.g. batch_size.forward
  std::string law;              // in one sentence
  CaseDomain domain;            // where the law holds and says something
  EnumSet<Quantity> judges = EnumSet<Quantity>::all();
  std::string faulty;           // a variant in kernels/faulty/ that it catches
  std::function<Verdict(Trial&)> check;
};

inline constexpr EnumSet<Quantity> kForward{Quantity::kOut, Quantity::kLse};
inline constexpr EnumSet<Quantity> kGradients{Quantity::kDq, Quantity::kDk, Quantity::kDv};

}  // namespace attest
