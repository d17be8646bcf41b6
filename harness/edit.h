// Simplifications of data: small texts, applied in order to inputs that a Case or a fixture gave.
//   "zero q"        every element 0                 (q, k, v, dout, dlse)
//   "ones v"        every element 1
//   "pow2 k"        every element to the power of two below it, sign kept
//   "drop dlse"     no gradient for lse/rem         (dlse, key_padding_mask, sequences: the tensors as a whole batch)
//   "keep batch 0 1", "keep queries 3 1", "keep keys 0 8", "keep head 2", "keep dims 4", "keep dims_v 4"
//                   a part of the problem: begin and count (of packed sequences for batch); one KV head with its group; the first dims
#pragma once

#include <string>
#include <vector>

#include "harness/tensors.h"

namespace attest {

/// Throws UsageError for a text that is no edit or does not fit the inputs.
Inputs apply_edit(const Inputs& in, const std::string& edit);

/// Edits to try on these inputs, best first: parts of the problem (only with `structure`), then plainer data.
std::vector<std::string> edit_candidates(const Inputs& in, bool structure);

}  // namespace attest
