// The number at each place of each operand of a case, before it is rounded to the dtype. Exact in double; the rounding is
// encode()'s. Regimes follow from the case alone, so that a smaller case holds a part of a larger one's data.
#pragma once

#include <functional>

#include "harness/case.h"
#include "harness/noise.h"

namespace attest {

using Element = std::function<double(const Place&)>;

struct Fills {
  Element q, k, v, dout;
  Element dlse;  // fp32; dim 0
};

/// kSaturated, kNegative: every |z| is within a factor of about 2 of the magnitude (3 for D = 1), as far as the dtype allows.
/// kEqual: all keys of a KV head are the same. kCancelling: neighbouring dims of q·k cancel to 1/16 of their terms, and
/// keys 2m and 2m+1 are nearly the same. kSubnormal: q subnormal, k large. Values kConstant: the same row for every key, and for
/// every query in dout. kOneHot: row j is one at dim j mod Dv. kCancelling: keys 2m and 2m+1 are nearly opposite in v,
/// neighbouring dims and queries in dout. kSubnormal: v, and every odd row of dout. kLarge: v large and dout as small.
Fills fills_of(const Case& c);

/// Whether the key-padding mask keeps a key. At least one is kept and, where Skv > 1, one hidden, but for kNone and kAll.
/// With kExpanded all batch elements have the draws of the first.
bool keeps_key(const Case& c, int64_t batch, int64_t key);

}  // namespace attest
