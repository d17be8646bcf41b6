// One query row in balls: logits → weights and dP → dz, the two steps in which the operators differ.
#pragma once

#include "oracles/ball.h"

namespace attest {

/// The visible keys of one query, ascending. `logits` hold q·k on entry, the weights P or A on return; `dp` hold dout·v on
/// entry, dz on return (null: forward only).
struct BallRow {
  arb_ptr logits;
  arb_ptr dp;
  int64_t keys;
  arb_srcptr scale;
  arb_srcptr dlse;  // of rem for stick-breaking
  slong bits;
};

/// Both set `lse` (rem). Whatever choice they take by a midpoint (the arg-max, the sign of a logit), the formulas hold for every
/// number: a wrong choice widens the balls and leaves them true.
void softmax_row(const BallRow& row, arb_ptr lse);
void stickbreaking_row(const BallRow& row, arb_ptr rem);

}  // namespace attest
