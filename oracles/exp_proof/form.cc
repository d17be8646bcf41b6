#include "oracles/exp_proof/form.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attest::exp_proof {
namespace {

constexpr double kUp = 1 + 0x1p-40;  // covers the rounding of short sums of bounds in double

/// Half the spacing of the doubles of at most this size; half the least subnormal for what underflows.
double half_spacing(double size) { return size == 0 ? 0 : std::ldexp(1.0, std::max(std::ilogb(size) - 53, -1075)) + 0x1p-1074; }

Polynomial at_or_zero(const std::map<int, Polynomial>& noise, int index) {
  const auto it = noise.find(index);
  return it == noise.end() ? Polynomial() : it->second;
}

}  // namespace

Box::Box(double low, double high) {
  const Ball from(low), to(high);
  arb_union(rho_, from, to, kBits);
}

int Box::new_noise(double bound) {
  bounds_.push_back(bound);
  return static_cast<int>(bounds_.size()) - 1;
}

double Form::noise_most() const {
  double sum = 0;
  for (const auto& [index, factor] : noise_) sum += factor.most(box_->rho()) * box_->noise(index);
  return sum * kUp;
}

double Form::most() const {
  const Ball none;
  return (center_.most(box_ == nullptr ? none : box_->rho()) + noise_most()) * kUp;
}

double Form::least() const {
  const Ball none;
  return std::max(0.0, center_.least(box_ == nullptr ? none : box_->rho()) / kUp - noise_most() * kUp);
}

Form Form::unknown(double bound) const {
  Form form(*box_, Polynomial());
  form.noise_[box_->new_noise(bound)] = Polynomial(1);
  return form;
}

Form Form::rounding() const { return unknown(half_spacing(most())); }

Form operator+(const Form& a, const Form& b) {
  Form sum = a;
  sum.box_ = a.box_ != nullptr ? a.box_ : b.box_;
  sum.center_ = a.center_ + b.center_;
  for (const auto& [index, factor] : b.noise_) sum.noise_[index] = at_or_zero(a.noise_, index) + factor;
  return sum;
}

Form Form::less(const Form& b) const { return *this + Form(-1.0) * b; }

/// The product of the two parts of rounding errors is of second order: only its size is kept.
Form operator*(const Form& a, const Form& b) {
  Form product = a;
  product.box_ = a.box_ != nullptr ? a.box_ : b.box_;
  product.center_ = a.center_ * b.center_;
  for (auto& [index, factor] : product.noise_) factor = factor * b.center_;
  for (const auto& [index, factor] : b.noise_)
    product.noise_[index] = at_or_zero(product.noise_, index) + factor * a.center_;
  if (!a.noise_.empty() && !b.noise_.empty()) product.center_.blur(a.noise_most() * b.noise_most() * kUp);
  return product;
}

Pair<Form> two_product(const Form& a, const Form& b) {
  const Form exact = a * b, error = exact.rounding();
  return {exact + error, -error + exact.unknown(0x1p-1074)};  // the low part may underflow
}

Pair<Form> two_sum(const Form& a, const Form& b) {
  const Form exact = a + b, error = exact.rounding();
  return {exact + error, -error};
}

Pair<Form> fast_two_sum(const Form& a, const Form& b) {
  Pair<Form> sum = two_sum(a, b);
  if (a.least() < b.most()) sum.l = sum.l + (a + b).unknown(0x1p-51 * (a.most() + b.most()));
  return sum;
}

}  // namespace attest::exp_proof
