// First-order error bookkeeping: how far a quantity may be off, as one number per ErrorSource, to be multiplied by its unit.
#pragma once

#include <array>

#include "harness/contract.h"
#include "oracles/error_units.h"

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

}  // namespace attest
