#include "harness/case.h"

#include <fmt/format.h>

#include <cmath>
#include <ostream>

namespace attest {
namespace {

std::string logits_text(const Case& c) {
  const std::string_view name = name_of(c.logits);
  return takes_magnitude(c.logits) || c.magnitude != 0 ? fmt::format("{}({})", name, c.magnitude) : std::string(name);
}

/// Counters of the data generator hold 32 bits a coordinate, and work() must not overflow.
std::optional<std::string> too_large(const AttentionProblem& p) {
  double work = 1;
  for (int64_t size : {p.batch, p.num_heads_q, p.num_heads_kv, p.seqlen_q, p.seqlen_kv, p.head_dim, p.head_dim_v})
    if (size > (int64_t{1} << 24)) return fmt::format("the size {} is above 2^24", size);
  for (int64_t size : {p.batch, p.num_heads_q, p.seqlen_q, p.seqlen_kv, p.head_dim + p.head_dim_v})
    work *= static_cast<double>(size);
  if (work >= 0x1p62) return "the problem needs more than 2^62 multiply-adds";
  return std::nullopt;
}

}  // namespace

bool takes_magnitude(LogitFill fill) {
  return fill == LogitFill::kSaturated || fill == LogitFill::kNegative || fill == LogitFill::kOneHot;
}

std::optional<std::string> Case::invalid_reason() const {
  if (auto reason = problem.invalid_reason()) return reason;
  if (auto reason = too_large(problem)) return reason;
  if (std::abs(problem.softmax_scale) > 0x1p60F) return "a scale above 2^60 leaves the range that the laws are for";
  if (!std::isfinite(magnitude) || magnitude < 0) return "the magnitude of the logits must be finite and not negative";
  if (takes_magnitude(logits) && magnitude == 0)
    return fmt::format("logits={} needs a magnitude, as in {}(88)", name_of(logits), name_of(logits));
  if (!takes_magnitude(logits) && magnitude != 0) return fmt::format("logits={} takes no magnitude", name_of(logits));
  if (problem.softmax_scale == 0 && (logits == LogitFill::kSaturated || logits == LogitFill::kNegative))
    return fmt::format("scale=0 makes every logit 0, so logits={} cannot be reached", name_of(logits));
  if (poison && padding == KeyPadding::kNone && sequences == Sequences::kWhole)
    return "poison needs padded keys, or rows past a length, to stand in: give padding=… or sequences=…";
  return std::nullopt;
}

std::string to_string(const AttentionProblem& p) {
  std::string text = fmt::format("op={} B={} Hq={} Hkv={} Sq={} Skv={} D={} Dv={} {}", name_of(p.op), p.batch, p.num_heads_q,
                                 p.num_heads_kv, p.seqlen_q, p.seqlen_kv, p.head_dim, p.head_dim_v, name_of(p.dtype));
  if (p.causal && p.op == Op::kSoftmax) text += " causal";
  if (p.attend_current) text += " attend_current";
  if (p.softmax_scale != default_softmax_scale(p.head_dim)) text += fmt::format(" scale={}", p.softmax_scale);
  return text;
}

std::string to_string(const Case& c) {
  std::string text = to_string(c.problem);
  if (c.sequences != Sequences::kWhole) text += fmt::format(" sequences={}", name_of(c.sequences));
  if (c.padding != KeyPadding::kNone) text += fmt::format(" padding={}", name_of(c.padding));
  if (c.poison) text += " poison";
  if (c.logits != LogitFill::kNormal || c.magnitude != 0) text += " logits=" + logits_text(c);
  if (c.values != ValueFill::kNormal) text += fmt::format(" values={}", name_of(c.values));
  if (c.dlse) text += " dlse";
  if (c.layout != Layout::kContiguous) text += fmt::format(" layout={}", name_of(c.layout));
  if (c.seed != 0) text += fmt::format(" seed={}", c.seed);
  return text;
}

std::ostream& operator<<(std::ostream& os, const Case& c) { return os << to_string(c); }

uint64_t hash_of(const Case& c) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const unsigned char byte : to_string(c)) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

}  // namespace attest
