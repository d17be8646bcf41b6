#include "tools/bench/flops.h"

#include <algorithm>

namespace attest::bench {

std::optional<Roof> roof_of(const std::string& gpu) {
  if (gpu.find("H200") != std::string::npos) return Roof{790e12, 4.8e12};
  return std::nullopt;
}

double visible_pairs(const AttentionProblem& p) {
  int64_t pairs = 0;
  const bool current = p.op == Op::kSoftmax || p.attend_current;
  for (int64_t i = 0; i < p.seqlen_q; ++i)
    pairs += p.causal ? std::clamp<int64_t>(p.position(i) + (current ? 1 : 0), 0, p.seqlen_kv) : p.seqlen_kv;
  return static_cast<double>(p.batch * p.num_heads_q) * static_cast<double>(pairs);
}

double flops(const AttentionProblem& p, Pass pass) {
  const auto d = static_cast<double>(p.head_dim), dv = static_cast<double>(p.head_dim_v);
  const double forward = d + dv, backward = 3 * d + 2 * dv;
  return 2 * visible_pairs(p) * (pass == Pass::kBoth ? forward + backward : forward);
}

double bytes(const AttentionProblem& p, Pass pass) {
  const int64_t element = p.dtype == Dtype::kFloat32 ? 4 : 2;
  const int64_t rows_q = p.batch * p.num_heads_q * p.seqlen_q, rows_kv = p.batch * p.num_heads_kv * p.seqlen_kv;
  const int64_t q = rows_q * p.head_dim, out = rows_q * p.head_dim_v, kv = rows_kv * (p.head_dim + p.head_dim_v);
  const int64_t elements = q + kv + out;
  return static_cast<double>((pass == Pass::kBoth ? 2 * elements : elements) * element + 4 * rows_q);
}

double floor_ms(const AttentionProblem& p, Pass pass, const Roof& roof) {
  return 1e3 * std::max(flops(p, pass) / roof.flops_per_second, bytes(p, pass) / roof.bytes_per_second);
}

}  // namespace attest::bench
