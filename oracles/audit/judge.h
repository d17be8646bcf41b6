// One group problem, evaluated by tiers and enclosed at high precision: is the true value within every radius?
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "oracles/audit/cell.h"
#include "oracles/group_problem.h"

namespace attest {

/// What is audited.
struct AuditTier {
  std::string name;
  bool two = true;  // gives lo too
  std::function<void(const GroupProblem&, GroupReference&)> evaluate;
};

/// An element whose true value is not known to lie within its radius.
struct AuditMiss {
  std::string tier;
  Quantity quantity = Quantity::kOut;
  int64_t element = 0;
  double hi = 0, lo = 0, radius = 0;
  double error = 0;  // an upper bound of |hi + lo − truth|
};

struct Judgement {
  std::vector<std::array<AuditCell, 5>> tiers;  // as given; by Quantity
  std::vector<AuditMiss> misses;                // the first of each tier and quantity
  int64_t elements = 0;                         // of the problem
};

/// Encloses the true values at `bits` bits. Throws UsageError where balls_unavailable().
Judgement judge(const GroupProblem& problem, const std::vector<AuditTier>& tiers, int bits);

/// Frees what the enclosures of this thread keep; at the end of a thread that judged.
void end_judging_thread();

}  // namespace attest
