// A group's quantities as balls, before anything is rounded to double: for tier 2 and for the audit of the other tiers.
#pragma once

#include "oracles/ball.h"
#include "oracles/group_problem.h"

namespace attest {

/// By Quantity: out [group·n_q, Dv], lse or rem [group·n_q, 1], dq [group·n_q, D], dk [n_kv, D], dv [n_kv, Dv]; the gradients are
/// empty when the problem has no dout. What the definition makes exact is exact: no visible key, a key that nobody sees.
struct BallReference {
  std::array<BallMatrix, 5> of;
  BallMatrix& operator[](Quantity quantity) { return of[static_cast<size_t>(quantity)]; }
  const BallMatrix& operator[](Quantity quantity) const { return of[static_cast<size_t>(quantity)]; }
};

/// Throws UsageError when a visible input is not finite.
BallReference ball_reference(const GroupProblem& problem, int bits);

/// Two doubles and a radius, rounded up, that enclose a ball: |x − hi − lo| ≤ radius for every x in it.
struct Enclosed {
  double hi = 0, lo = 0, radius = 0;
};
/// With `two` false, lo is 0 and the radius covers what it would have held.
Enclosed enclose(arb_srcptr ball, bool two);

}  // namespace attest
