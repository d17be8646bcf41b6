// What the host sides of the stick-breaking kernels share.
#pragma once

#include <cmath>
#include <limits>

#include "kernels/hopper/fused_operands.h"
#include "kernels/hopper/stick_kernels.h"

namespace attest::stick {

inline Problem problem_of(const AttentionParams& p, const fused::Operands& operands) {
  // q holds the sign; a scale of 0 has made q zero. The floor keeps −∞ · scale = −∞ where the scale is a subnormal.
  const float scale = p.softmax_scale == 0.0F ? 1.0F : std::abs(p.softmax_scale);
  return {.batch = static_cast<int>(p.batch),
          .heads = static_cast<int>(p.num_heads_q),
          .group = static_cast<int>(p.group()),
          .seqlen_q = static_cast<int>(p.seqlen_q),
          .seqlen_kv = static_cast<int>(p.seqlen_kv),
          .head_dim = static_cast<int>(p.head_dim),
          .head_dim_v = static_cast<int>(p.head_dim_v),
          .first_limit = static_cast<int>(p.seqlen_kv - p.seqlen_q - (p.attend_current ? 0 : 1)),
          .logit_scale = std::max(scale * fused::kLog2E, std::numeric_limits<float>::min()),
          .keep = operands.keep,
          .keep_words = operands.keep_words};
}

}  // namespace attest::stick
