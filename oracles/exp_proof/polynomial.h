// Polynomials with balls for coefficients, and bounds rounded outwards.
#pragma once

#include <utility>

#include "oracles/ball.h"
#if __has_include(<flint/arb_poly.h>)
#include <flint/arb_poly.h>
#else
#include <arb_poly.h>
#endif

namespace attest::exp_proof {

inline constexpr slong kBits = 400;

/// |x|, rounded up.
inline double upper(arb_srcptr x) {
  BigFloat bound;
  arb_get_abs_ubound_arf(bound, x, 53);
  return arf_get_d(bound, ARF_RND_UP);
}
/// |x|, rounded down.
inline double lower(arb_srcptr x) {
  BigFloat bound;
  arb_get_abs_lbound_arf(bound, x, 53);
  return arf_get_d(bound, ARF_RND_DOWN);
}

class Polynomial {
 public:
  Polynomial() { arb_poly_init(p_); }
  explicit Polynomial(double constant) : Polynomial() { set(0, Ball(constant)); }
  Polynomial(const Polynomial& o) : Polynomial() { arb_poly_set(p_, o.p_); }
  Polynomial(Polynomial&& o) noexcept : Polynomial() { arb_poly_swap(p_, o.p_); }
  Polynomial& operator=(Polynomial o) noexcept {
    arb_poly_swap(p_, o.p_);
    return *this;
  }
  ~Polynomial() { arb_poly_clear(p_); }
  /// ρ itself.
  static Polynomial variable() {
    Polynomial x;
    x.set(1, Ball(1));
    return x;
  }

  void set(slong n, arb_srcptr coefficient) { arb_poly_set_coeff_arb(p_, n, coefficient); }
  /// Adds a number of which only |x| ≤ bound is known.
  void blur(double bound) {
    Ball x;
    arb_poly_get_coeff_arb(x, p_, 0);
    BigFloat error;
    arf_set_d(error, bound);
    arb_add_error_arf(x, error);
    set(0, x);
  }
  friend Polynomial operator+(const Polynomial& a, const Polynomial& b) { return with(arb_poly_add, a, b); }
  friend Polynomial operator-(const Polynomial& a, const Polynomial& b) { return with(arb_poly_sub, a, b); }
  friend Polynomial operator*(const Polynomial& a, const Polynomial& b) { return with(arb_poly_mul, a, b); }

  void evaluate(arb_ptr y, arb_srcptr x) const { arb_poly_evaluate(y, p_, x, kBits); }
  double most(arb_srcptr x) const {
    Ball y;
    evaluate(y, x);
    return upper(y);
  }
  double least(arb_srcptr x) const {
    Ball y;
    evaluate(y, x);
    return lower(y);
  }

 private:
  template <class Operation>
  static Polynomial with(Operation operation, const Polynomial& a, const Polynomial& b) {
    Polynomial c;
    operation(c.p_, a.p_, b.p_, kBits);
    return c;
  }
  arb_poly_t p_;
};

}  // namespace attest::exp_proof
