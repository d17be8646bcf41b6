// A number of a floating-point program as a form: p(ρ) + Σ p_i(ρ)·n_i, where ρ is any number of a box, the n_i are the rounding
// errors made so far, of which only a bound is known, and the p are polynomials whose coefficients are balls. What a sum or
// product without rounding would give is exact, so that an error and the low part that holds it cancel, as they do in the
// program: error-free transforms keep their meaning, which intervals would lose.
#pragma once

#include <map>
#include <vector>

#include "oracles/exp_proof/polynomial.h"

namespace attest::exp_proof {

/// ρ ∈ [low, high], and the bounds of the rounding errors that its forms hold.
class Box {
 public:
  Box(double low, double high);
  /// A new unknown number of at most `bound`; its index.
  int new_noise(double bound);
  double noise(int index) const { return bounds_[index]; }
  const Ball& rho() const { return rho_; }

 private:
  Ball rho_;
  std::vector<double> bounds_;
};

class Form {
 public:
  explicit Form(double constant) : center_(constant) {}
  Form(Box& box, Polynomial center) : box_(&box), center_(std::move(center)) {}

  /// Without rounding.
  friend Form operator+(const Form& a, const Form& b);
  friend Form operator-(const Form& a) { return Form(0.0).less(a); }
  friend Form operator-(const Form& a, const Form& b) { return a.less(b); }
  friend Form operator*(const Form& a, const Form& b);

  double most() const;   // an upper bound of |this| over the box
  double least() const;  // a lower bound, ≥ 0
  /// The rounding error of a result of this size, as a form of its own.
  Form rounding() const;
  Form unknown(double bound) const;
  const Polynomial& center() const { return center_; }
  /// The part that is due to rounding errors, at most.
  double noise_most() const;

 private:
  Form less(const Form& b) const;
  Box* box_ = nullptr;  // null: a constant
  Polynomial center_;
  std::map<int, Polynomial> noise_;
};

/// What the program computes with, in the domain of forms. Each rounds once, as the program's operations do.
inline Form rounded(const Form& exact) { return exact + exact.rounding(); }
inline Form fma(const Form& a, const Form& b, const Form& c) { return rounded(a * b + c); }
inline Form add(const Form& a, const Form& b) { return rounded(a + b); }
inline Form multiply(const Form& a, const Form& b) { return rounded(a * b); }

template <class T>
struct Pair {
  T h, l;
};
Pair<Form> two_product(const Form& a, const Form& b);
Pair<Form> two_sum(const Form& a, const Form& b);
/// Exact where |a| ≥ |b| is certain; elsewhere its error is taken for what any sum may lose.
Pair<Form> fast_two_sum(const Form& a, const Form& b);

}  // namespace attest::exp_proof
