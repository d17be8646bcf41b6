// The smallest sizes that a domain holds: what generation starts from and what shrinking ends at.
#pragma once

#include <optional>
#include <string>

#include "harness/case_domain.h"

namespace attest {

/// The smallest multiple of `multiple` in `range`, or nothing.
std::optional<int64_t> first_multiple(const Range& range, int64_t multiple);

/// Sets every size of `p`, for its op and its causal, to the smallest in `domain`; a positive scale becomes the default one.
/// The reason why there are no such sizes, or nothing.
std::optional<std::string> set_smallest_sizes(const CaseDomain& domain, AttentionProblem& p);

}  // namespace attest
