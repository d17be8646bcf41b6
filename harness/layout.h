// Where the operands of a case lie in memory.
#pragma once

#include "harness/case.h"
#include "harness/tensors.h"

namespace attest {

/// q, k, v and dout of `c`, with the sizes of `tensors`, on the CPU, in its layout; every element and every byte around them is NaN.
/// kTransposed: [B, S, H, D] in memory. kPackedQkv: q, k, v are views of one [B, S, Hq + 2 Hkv, D]; where Sq ≠ Skv or
/// D ≠ Dv that can't be, and it is kTransposed; dout always is. kPadded: rows 1, 2, 3 or 8 elements apart. kMisaligned: 1 to 7
/// elements from the start of the storage. kExpanded: batch stride 0, one batch element in memory (kContiguous when B = 1).
/// Packed tensors are views of [T, H, D], so that kTransposed is [H, T, D] in memory.
Inputs allocate(const Case& c, const AttentionProblem& tensors);

}  // namespace attest
