#include "tools/bench/cases.h"

#include <fmt/format.h>

namespace attest::bench {
namespace {

/// Causal, D = Dv, the default scale.
struct Shape {
  Device device;
  int64_t batch, num_heads_q, num_heads_kv, seqlen_q, seqlen_kv, head_dim;
  Dtype dtype = Dtype::kBFloat16;
};

/// Add lines; change none: a result is compared with those of the same name.
constexpr Shape kShapes[] = {
    // Qwen3-8B, serving and scoring.
    {Device::kCuda, 1, 32, 8, 1, 128, 128},
    {Device::kCuda, 1, 32, 8, 1, 1024, 128},
    {Device::kCuda, 1, 32, 8, 128, 128, 128},
    {Device::kCuda, 1, 32, 8, 512, 512, 128},
    {Device::kCuda, 1, 32, 8, 1024, 1024, 128},
    {Device::kCuda, 4, 32, 8, 128, 128, 128},
    {Device::kCuda, 8, 32, 8, 64, 64, 128},
    // Qwen3-8B, decoding with longer caches and larger batches; a chunk of a long prompt.
    {Device::kCuda, 1, 32, 8, 1, 4096, 128},
    {Device::kCuda, 1, 32, 8, 1, 16384, 128},
    {Device::kCuda, 1, 32, 8, 1, 65536, 128},
    {Device::kCuda, 8, 32, 8, 1, 1024, 128},
    {Device::kCuda, 8, 32, 8, 1, 4096, 128},
    {Device::kCuda, 8, 32, 8, 1, 16384, 128},
    {Device::kCuda, 1, 32, 8, 512, 8192, 128},
    // Training and long prefill with as many KV heads as query heads.
    {Device::kCuda, 8, 16, 16, 1024, 1024, 128},
    {Device::kCuda, 4, 16, 16, 2048, 2048, 128},
    {Device::kCuda, 2, 16, 16, 4096, 4096, 128},
    {Device::kCuda, 1, 16, 16, 8192, 8192, 128},
    {Device::kCuda, 4, 32, 32, 2048, 2048, 64},
    {Device::kCuda, 4, 32, 32, 4096, 4096, 128},
    {Device::kCuda, 2, 32, 32, 8192, 8192, 128},
    // Small enough for plain C++ on one core: they show that the command works, and what a change costs.
    {Device::kCpu, 1, 4, 2, 1, 64, 64},
    {Device::kCpu, 1, 4, 2, 32, 32, 64},
    {Device::kCpu, 4, 4, 2, 16, 16, 64},
};

AttentionProblem problem_of(Op op, const Shape& s) {
  return {.op = op,
          .dtype = s.dtype,
          .batch = s.batch,
          .num_heads_q = s.num_heads_q,
          .num_heads_kv = s.num_heads_kv,
          .seqlen_q = s.seqlen_q,
          .seqlen_kv = s.seqlen_kv,
          .head_dim = s.head_dim,
          .head_dim_v = s.head_dim,
          .causal = true,
          .softmax_scale = default_softmax_scale(s.head_dim)};
}

std::string length_name(int64_t n) { return n >= 1024 && n % 1024 == 0 ? fmt::format("{}k", n / 1024) : fmt::format("{}", n); }

}  // namespace

std::string shape_name(const AttentionProblem& p) {
  std::string name = p.batch > 1 ? fmt::format("batch{}-", p.batch) : "";
  if (p.seqlen_q == 1) {
    name += "decode-" + length_name(p.seqlen_kv);
  } else if (p.seqlen_q == p.seqlen_kv) {
    name += "prefill-" + length_name(p.seqlen_kv);
  } else {
    name += fmt::format("chunk-{}-of-{}", length_name(p.seqlen_q), length_name(p.seqlen_kv));
  }
  if (p.num_heads_q == p.num_heads_kv) name += fmt::format("-h{}", p.num_heads_q);
  if (p.num_heads_q == p.num_heads_kv && p.head_dim != 128) name += fmt::format("-d{}", p.head_dim);
  return p.causal ? name : name + "-full";
}

std::vector<BenchCase> bench_cases() {
  std::vector<BenchCase> cases;
  for (Op op : EnumSet<Op>::all().members()) {
    for (const Shape& shape : kShapes) {
      const AttentionProblem p = problem_of(op, shape);
      const std::string name = shape_name(p);
      cases.push_back({name, p, shape.device});
      if (op == Op::kStickBreaking) cases.push_back({name + "-long", p, shape.device, Values::kLongRange});
    }
  }
  return cases;
}

}  // namespace attest::bench
