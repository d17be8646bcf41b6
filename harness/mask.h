// *The* definition of which key a query may look at; used by oracles and by tests, never by kernels. It is that of one sequence:
// inputs that hold several are cut into them first (one_sequence, harness/tensors.h).
#pragma once

#include <cstdint>

#include "harness/attention_problem.h"

namespace attest {

/// `keep` is the key-padding mask, [B, Skv] row-major bytes, 1 = the key exists; null: every key exists.
struct Mask {
  const AttentionProblem& problem;
  const uint8_t* keep = nullptr;

  bool allows(int64_t b, int64_t query, int64_t key) const {
    if (keep != nullptr && keep[b * problem.seqlen_kv + key] == 0) return false;
    if (!problem.causal) return true;
    const int64_t p = problem.position(query);
    return problem.op == Op::kStickBreaking && !problem.attend_current ? key < p : key <= p;
  }
};

}  // namespace attest
