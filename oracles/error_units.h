// Constants of the error terms (README.md), apart from the bookkeeping.
#pragma once

namespace attest {

/// Terms of kUnit (u = 2^−24) that stand for absolute errors of fp32.
inline constexpr double kUnderflow = 0x1p-126;  // u·2^−126 = 2^−150: a product rounded among the subnormals
inline constexpr double kLost = 0x1p-102;       // u·2^−102 = 2^−126: a number below the normals, taken for 0

/// Relative error, in u, of exp with the operations around it (sum, division) that make a probability of it.
inline constexpr double kProbabilityUnits = 8;

}  // namespace attest
