// The numbers of a case with one batch element and one KV head, as the certified tiers take them: for tests, audit and bench.
#pragma once

#include <vector>

#include "harness/case.h"
#include "oracles/group_problem.h"

namespace attest {

/// Owns what a GroupProblem points to. Keys that the mask hides, and dlse of queries that see no key, are NaN.
struct GroupData {
  Case source;
  std::vector<double> q, k, v, dout, dlse;
  std::vector<uint8_t> keep;  // empty: all

  GroupProblem problem() const;
};
/// Throws UsageError when the case is invalid, or has more than one batch element or KV head.
GroupData group_data(const Case& c);

/// Owns where an evaluation puts hi, lo and radius.
struct GroupValues {
  struct Values {
    std::vector<double> hi, lo, radius;
  };
  std::array<Values, 5> of;  // by Quantity

  explicit GroupValues(const GroupProblem& problem);
  GroupReference reference(bool two = true);  // two: lo too
};
/// Elements of a quantity; 0 for gradients without dout.
int64_t elements_of(const GroupProblem& problem, Quantity quantity);

}  // namespace attest
