// First-order error bookkeeping: how far a quantity may be off, as one number per ErrorSource, to be multiplied by its unit.
#pragma once

#include <array>

#include "harness/contract.h"

namespace attest {

/// Terms are ≥ 0 and add up linearly: |error| ≤ Σ_source unit(source) · of[source].
struct ErrorTerms {
  std::array<double, enum_size<ErrorSource>()> of{};

  double operator[](ErrorSource s) const { return of[static_cast<size_t>(s)]; }
  ErrorTerms& add(ErrorSource s, double term) {
    of[static_cast<size_t>(s)] += term;
    return *this;
  }
  ErrorTerms& add(double factor, const ErrorTerms& other) {
    for (size_t s = 0; s < of.size(); ++s) of[s] += factor * other.of[s];
    return *this;
  }
};

/// Terms of kUnit (u = 2^−24) that stand for absolute errors of fp32.
inline constexpr double kUnderflow = 0x1p-126;  // u·2^−126 = 2^−150: a product rounded among the subnormals
inline constexpr double kLost = 0x1p-102;       // u·2^−102 = 2^−126: a number below the normals, taken for 0

/// Relative error, in u, of exp with the operations around it (sum, division) that make a probability of it.
inline constexpr double kProbabilityUnits = 8;

}  // namespace attest
