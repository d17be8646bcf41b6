#include <algorithm>
#include <cmath>
#include <limits>

#include "oracles/audit/judge.h"
#include "oracles/ball_reference.h"
#include "oracles/group_data.h"

namespace attest {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr slong kDifferenceBits = 8192;  // of hi + lo − truth: exact unless the operands lie further apart, then rounded outwards

struct Judged {
  bool inside = false, outside = false;  // neither: the enclosure is too wide to tell
  double error = 0;                      // upper bound
  bool resolved = false;                 // the error is known to within a factor of 2; else it may be 0
};

Judged judge_element(const Enclosed& claim, arb_srcptr truth) {
  if (arf_is_inf(arb_midref(truth))) {
    const bool same = claim.hi == arf_get_d(arb_midref(truth), ARF_RND_NEAR) && claim.radius >= 0;
    return {same, !same, same ? 0 : kInf};
  }
  if (!std::isfinite(claim.hi) || !std::isfinite(claim.lo) || !(claim.radius >= 0)) return {false, true, kInf};
  Ball difference, part(claim.hi);
  BigFloat bound;
  arb_sub(difference, truth, part, kDifferenceBits);
  arb_set_d(part, claim.lo);
  arb_sub(difference, difference, part, kDifferenceBits);
  Judged judged;
  arb_get_abs_lbound_arf(bound, difference, kDifferenceBits);
  judged.outside = arf_cmp_d(bound, claim.radius) > 0;
  const double least = arf_get_d(bound, ARF_RND_DOWN);
  arb_get_abs_ubound_arf(bound, difference, kDifferenceBits);
  judged.inside = arf_cmp_d(bound, claim.radius) <= 0;
  judged.error = arf_get_d(bound, ARF_RND_UP);
  judged.resolved = least > 0 && judged.error <= 2 * least;
  return judged;
}

/// Of fp32 at |truth|, no less than the smallest subnormal.
double ulp_fp32(arb_srcptr truth) {
  if (arf_is_special(arb_midref(truth))) return 0x1p-149;
  const slong exponent = arf_abs_bound_lt_2exp_si(arb_midref(truth));  // |truth| < 2^exponent
  return std::ldexp(1.0, static_cast<int>(std::clamp<slong>(exponent - 24, -149, 900)));
}

double largest(const BallMatrix& values) {
  double size = 0;
  for (int64_t i = 0; i < values.rows(); ++i)
    for (int64_t d = 0; d < values.columns(); ++d)
      if (arb_is_finite(values.at(i, d))) size = std::max(size, std::fabs(arf_get_d(arb_midref(values.at(i, d)), ARF_RND_DOWN)));
  return size;
}

void count(AuditCell& cell, const Judged& judged, double radius, double ulp, double tensor_size) {
  ++cell.elements;
  if (radius == kInf) {  // nothing was said
    ++cell.unbounded;
    return;
  }
  cell.violations += judged.outside;
  cell.undecided += !judged.outside && !judged.inside;
  cell.exact += !judged.resolved;
  cell.worst_ulps = std::max(cell.worst_ulps, judged.error / ulp);
  if (tensor_size > 0) cell.worst_relative = std::max(cell.worst_relative, judged.error / tensor_size);
  if (judged.resolved) cell.add_pessimism(radius / judged.error);
}

/// Every element of one quantity of one tier; the first miss is told.
AuditCell judge_quantity(const GroupValues::Values& claims, const BallMatrix& truth, AuditMiss& first_miss) {
  AuditCell cell;
  const double size = largest(truth);
  for (int64_t i = 0; i < static_cast<int64_t>(claims.hi.size()); ++i) {
    const arb_srcptr value = truth.at(i / truth.columns(), i % truth.columns());
    const Enclosed claim{claims.hi[i], claims.lo[i], claims.radius[i]};
    const Judged judged = judge_element(claim, value);
    if (!judged.inside && cell.sound())
      first_miss = {first_miss.tier, first_miss.quantity, i, claim.hi, claim.lo, claim.radius, judged.error};
    count(cell, judged, claim.radius, ulp_fp32(value), size);
  }
  return cell;
}

}  // namespace

Judgement judge(const GroupProblem& problem, const std::vector<AuditTier>& tiers, int bits) {
  const BallReference truth = ball_reference(problem, bits);
  Judgement judgement;
  for (const Quantity quantity : EnumSet<Quantity>::all().members()) judgement.elements += elements_of(problem, quantity);
  for (const AuditTier& tier : tiers) {
    GroupValues values(problem);
    GroupReference reference = values.reference(tier.two);
    tier.evaluate(problem, reference);
    std::array<AuditCell, 5>& cells = judgement.tiers.emplace_back();
    for (const Quantity quantity : EnumSet<Quantity>::all().members()) {
      const auto n = static_cast<size_t>(quantity);
      AuditMiss miss{tier.name, quantity};
      cells[n] = judge_quantity(values.of[n], truth[quantity], miss);
      if (!cells[n].sound()) judgement.misses.push_back(miss);
    }
  }
  return judgement;
}

void end_judging_thread() { flint_cleanup(); }

}  // namespace attest
