#include "harness/reference.h"

#include <cmath>
#include <vector>

#include "harness/float_format.h"

namespace attest {

at::Tensor forward_error_bound(const ReferenceQuantity& reference, const ErrorUnits& units, at::ScalarType type) {
  const FloatFormat format = float_format(dtype_of(type));
  const at::Tensor value = reference.value.contiguous(), terms = reference.terms.contiguous();
  at::Tensor bound = at::empty(value.sizes(), at::kDouble);
  const auto n = value.numel();
  const double* v = value.const_data_ptr<double>();
  const double* t = terms.const_data_ptr<double>();
  auto* b = bound.mutable_data_ptr<double>();
  for (int64_t i = 0; i < n; ++i) b[i] = format.unit_roundoff() * std::fabs(v[i]) + 0.5 * format.smallest_subnormal();
  for (size_t source = 0; source < units.size(); ++source) {
    if (units[source] == 0.0) continue;  // an infinite term must not turn into NaN
    const double* term = t + static_cast<int64_t>(source) * n;
    for (int64_t i = 0; i < n; ++i) b[i] += units[source] * term[i];
  }
  return bound;
}

}  // namespace attest
