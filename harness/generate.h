// Random cases, through RapidCheck's generators, and the shrinking of cases.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/case_domain.h"

namespace attest {

/// The case number `index` of a campaign: a function of its arguments alone. `domain` must not be empty.
Case generate(uint64_t seed, uint64_t index, const CaseDomain& domain);

/// Smaller cases to try, best first (the biggest jump first), all valid and inside `domain`. Never contains `c`.
/// Sizes shrink towards 1, (Hq, Hkv) together, dtype stays, masks, sequences, fills and layout towards their plainest, seed stays.
std::vector<Case> shrink_candidates(const Case& c, const CaseDomain& domain);

/// A number that never rises along an accepted shrink: how complicated a case is.
double complexity(const Case& c);

}  // namespace attest
