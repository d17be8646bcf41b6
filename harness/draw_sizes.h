// Drawing the sizes of a case inside a domain: around the edges of tiles, small ones often, within a budget of work.
#pragma once

#include "harness/case_domain.h"

namespace attest {

/// Draws every size of `p`, whose op and causal are drawn and whose sizes are the smallest in `domain`. To be called inside
/// rc::gen::exec.
void draw_sizes(const CaseDomain& domain, AttentionProblem& p);

}  // namespace attest
