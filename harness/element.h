// One element of a tensor, for comparators: where it is, what it holds.
#pragma once

#include <string>
#include <vector>

#include "harness/tensors.h"

namespace attest {

/// The index of element `flat` (row-major) of a tensor of these sizes.
std::vector<int64_t> unravel(int64_t flat, at::IntArrayRef sizes);

/// The bytes of element `flat` of a contiguous CPU tensor, as an integer.
uint64_t raw_bits(const at::Tensor& t, int64_t flat);

/// Why two tensors have no elements to compare (undefined, other shape, empty); "" when they do. Dtypes are not looked at.
std::string mismatch(const at::Tensor& actual, const at::Tensor& expected);

}  // namespace attest
