#include "oracles/quantity_writer.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kSafety = 8;  // second-order terms, the rounding of the terms themselves, exp and log a few units off

at::Tensor zeros(std::vector<int64_t> shape) { return at::zeros(shape, at::TensorOptions(at::kDouble)); }

}  // namespace

QuantityWriter::QuantityWriter(ReferenceQuantity& quantity, at::IntArrayRef shape, const ErrorUnits& units) : units_(units) {
  std::vector<int64_t> terms_shape = {static_cast<int64_t>(enum_size<ErrorSource>())};
  terms_shape.insert(terms_shape.end(), shape.begin(), shape.end());
  quantity = {zeros(shape.vec()), zeros(shape.vec()), zeros(terms_shape), zeros(shape.vec())};
  elements_ = quantity.value.numel();
  value_ = quantity.value.mutable_data_ptr<double>();
  radius_ = quantity.radius.mutable_data_ptr<double>();
  terms_ = quantity.terms.mutable_data_ptr<double>();
  trivial_ = quantity.trivial.mutable_data_ptr<double>();
}

void QuantityWriter::put_exactly(int64_t index, double value) {
  value_[index] = value;
  trivial_[index] = kInfinity;
}

void QuantityWriter::put(int64_t index, const Cell& cell) {
  value_[index] = static_cast<double>(cell.sum);
  radius_[index] = radius(cell, value_[index]);
  trivial_[index] = cell.trivial == 0 ? kInfinity : cell.trivial;
  for (size_t s = 0; s < cell.terms.of.size(); ++s) terms_[static_cast<int64_t>(s) * elements_ + index] = cell.terms.of[s];
}

// The oracle evaluates the same sums as the kernels that the terms describe, in the same order or a better one: its own error
// is bounded by the same terms, with the units of Wide in place of fp32's, and kSafety. To it comes the rounding of the sum to
// double, which is measured, and the least subnormal of double for what exp_nonpositive and that rounding take for 0.
double QuantityWriter::radius(const Cell& cell, double value) const {
  double working = 0;
  for (size_t s = 0; s < units_.size(); ++s) working += units_[s] * cell.terms.of[s];
  const double rounding = std::fabs(static_cast<double>(cell.sum - Wide(value)));
  return rounding * (1 + 0x1p-50) + kSafety * working + std::numeric_limits<double>::denorm_min();
}

}  // namespace attest
