// Case → Inputs. Integer arithmetic (Philox) and exact scaling alone: the same Case has the same bits on every machine.
#pragma once

#include "harness/case.h"

namespace attest {

struct Inputs;

/// On the CPU. The value of an element depends on (seed, operand, batch, head, position, dim) alone, so that a case with a
/// smaller batch, fewer heads or fewer rows holds a part of the same data. q, k, v, dout, dlse are distinct.
/// Packed sequence s holds the data of batch element s.
Inputs materialise(const Case& c);

}  // namespace attest
