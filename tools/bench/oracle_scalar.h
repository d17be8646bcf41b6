// The definition in a scalar multiprecision type, row by row: what tiers 0 to 2 are compared with for speed.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "oracles/group_problem.h"

namespace attest::bench {

/// Seconds that forward and backward of these query rows take, conversion of the inputs left out.
double seconds_in_cpp_bin_float_50(const GroupProblem& problem, const std::vector<int64_t>& rows);
/// Nothing where Attest was built without MPFR.
std::optional<double> seconds_in_mpfr_float_50(const GroupProblem& problem, const std::vector<int64_t>& rows);

}  // namespace attest::bench
