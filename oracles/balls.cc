// Tier 2: ball arithmetic by FLINT, rigorous whatever the data (Johansson, "Arb: efficient arbitrary-precision midpoint-radius
// interval arithmetic", IEEE Transactions on Computers 66, 2017). Products of matrices are exact fixed-point block products
// (Johansson, "Faster arbitrary-precision dot product and matrix multiplication", ARITH 2019).
#include <cmath>
#include <limits>

#include "oracles/ball_reference.h"

namespace attest {
namespace {

/// An upper bound as a double. The 30 bits of a `mag` are exact in double but for overflow and underflow, which round up.
double rounded_up(mag_srcptr bound) {
  BigFloat number;
  arf_set_mag(number, bound);
  return arf_get_d(number, ARF_RND_UP);
}

/// x −= y, exactly.
void subtract(BigFloat& x, double y) {
  BigFloat number;
  arf_set_d(number, y);
  arf_sub(x, x, number, ARF_PREC_EXACT, ARF_RND_DOWN);
}

}  // namespace

Enclosed enclose(arb_srcptr ball, bool two) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  if (arb_is_exact(ball) && arf_is_inf(arb_midref(ball))) return {arf_sgn(arb_midref(ball)) * kInf, 0, 0};
  Enclosed enclosed{arf_get_d(arb_midref(ball), ARF_RND_NEAR), 0, kInf};
  if (!std::isfinite(enclosed.hi)) return {0, 0, kInf};
  BigFloat rest;
  arf_set(rest, arb_midref(ball));
  subtract(rest, enclosed.hi);
  if (two) {
    enclosed.lo = arf_get_d(rest, ARF_RND_NEAR);
    subtract(rest, enclosed.lo);
  }
  mag_t radius;
  mag_init_set_arf(radius, rest);
  mag_add(radius, radius, arb_radref(ball));
  enclosed.radius = rounded_up(radius);
  mag_clear(radius);
  return enclosed;
}

std::optional<std::string> balls_unavailable() { return std::nullopt; }

void evaluate_balls(const GroupProblem& problem, GroupReference& reference, int bits) {
  const BallReference balls = ball_reference(problem, bits);
  for (size_t n = 0; n < balls.of.size(); ++n) {
    const BallMatrix& from = balls.of[n];
    GroupQuantity& to = reference.of[n];
    if (to.hi == nullptr) continue;
    for (int64_t i = 0; i < from.rows() * from.columns(); ++i) {
      const Enclosed enclosed = enclose(from.at(i / from.columns(), i % from.columns()), to.lo != nullptr);
      to.hi[i] = enclosed.hi;
      if (to.lo != nullptr) to.lo[i] = enclosed.lo;
      to.radius[i] = enclosed.radius;
    }
  }
}

}  // namespace attest
