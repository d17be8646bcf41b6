// What an oracle gives for one case: for each element of each output a value, a radius, and the sums of its error bound.
#pragma once

#include <array>

#include "harness/contract.h"
#include "harness/tensors.h"

namespace attest {

/// All tensors are float64, contiguous, on the CPU, shaped as the quantity. The true value lies within value + low ± radius,
/// a proven bound; |low| is at most half a spacing of value.
struct ReferenceQuantity {
  at::Tensor value;
  at::Tensor radius;
  at::Tensor terms;    // [kNumErrorSources, *shape], see ErrorSource; ≥ 0
  at::Tensor trivial;  // a bound on |value| known without computing it (max|v| for out): a larger bound says nothing
  at::Tensor low;      // undefined: 0
};

struct Reference {
  std::array<ReferenceQuantity, enum_size<Quantity>()> quantities;
  std::string oracle;  // its name, and the tier where it has several

  ReferenceQuantity& operator[](Quantity q) { return quantities[static_cast<size_t>(q)]; }
  const ReferenceQuantity& operator[](Quantity q) const { return quantities[static_cast<size_t>(q)]; }
};

/// The first-order bound per element, c = 1: Σ units·terms + u_out·|value| + half the least subnormal of `type`.
at::Tensor forward_error_bound(const ReferenceQuantity& reference, const ErrorUnits& units, at::ScalarType type);

}  // namespace attest
