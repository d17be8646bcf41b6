// One element against its bracketed true value. No verdict rests on a digit that is not proved: sums of error, radius and
// bound are compared exactly.
#pragma once

#include <cstdint>

#include "harness/contract.h"

namespace attest {

/// Ascending. The worst element is the first with the highest rank and, within it, the largest headroom.
enum class Rank : uint8_t { kNone, kVacuous, kPass, kUndecided, kFail };

struct Judged {
  Rank rank = Rank::kNone;
  double error = 0, bound = 0, headroom = 0;
};

/// Everything one pass over the elements needs; all pointers are contiguous and on the CPU.
struct Subject {
  const double* value;
  const double* low;      // null: 0
  const double* radius;
  const double* trivial;  // null: unknown
  const double* bound;    // null: computed from the element
  Tolerance tolerance;
  Dtype dtype;
  double vacuity_floor;   // c least subnormals; without it, v all zeros would be vacuous
};

/// Element `i`, for which the kernel gave `actual`. Throws Error when the reference is NaN.
Judged judge_element(const Subject& s, int64_t i, double actual);

}  // namespace attest
