// References of inputs that hold sequences of different lengths: an oracle evaluates each alone, and knows of one at a time.
#pragma once

#include <functional>

#include "harness/reference.h"
#include "harness/tensors.h"

namespace attest {

/// What `evaluate` gives for each sequence of `inputs` alone, shaped as the whole. Rows that belong to none (the tail of a cache,
/// rows past a length) are never read and have the value of a row without visible key. For inputs without sequences, what
/// `evaluate` gives. Throws UsageError for invalid inputs.
Reference evaluate_sequences(const Inputs& inputs, const std::function<Reference(const Inputs&)>& evaluate);

}  // namespace attest
