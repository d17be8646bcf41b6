#include "harness/attention_problem.h"

#include <cmath>
#include <ostream>

#include "harness/case.h"

namespace attest {

int64_t AttentionProblem::work() const {
  return batch * num_heads_q * seqlen_q * seqlen_kv * (head_dim + head_dim_v);
}

std::optional<std::string> AttentionProblem::invalid_reason() const {
  if (batch < 1 || num_heads_q < 1 || num_heads_kv < 1 || seqlen_q < 1 || seqlen_kv < 1 || head_dim < 1 || head_dim_v < 1)
    return "every size must be at least 1";
  if (num_heads_q % num_heads_kv != 0)
    return "Hq=" + std::to_string(num_heads_q) + " is not a multiple of Hkv=" + std::to_string(num_heads_kv);
  if (!std::isfinite(softmax_scale)) return "scale is not finite";
  if (op == Op::kStickBreaking && !causal) return "stick-breaking attention is causal by definition";
  if (op == Op::kSoftmax && attend_current) return "attend_current belongs to stick-breaking";
  return std::nullopt;
}

float default_softmax_scale(int64_t head_dim) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));
}

std::ostream& operator<<(std::ostream& os, const AttentionProblem& p) { return os << to_string(p); }

}  // namespace attest
