#include "harness/materialise.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "harness/encode.h"
#include "harness/error.h"
#include "harness/fill.h"
#include "harness/layout.h"
#include "harness/tensors.h"

namespace attest {
namespace {

/// [B, Skv] row-major, 1 = kept.
std::vector<uint8_t> kept_keys(const Case& c) {
  const AttentionProblem& p = c.problem;
  std::vector<uint8_t> kept(static_cast<size_t>(p.batch * p.seqlen_kv));
  for (int64_t b = 0; b < p.batch; ++b)
    for (int64_t j = 0; j < p.seqlen_kv; ++j) kept[static_cast<size_t>(b * p.seqlen_kv + j)] = keeps_key(c, b, j);
  return kept;
}

template <class Bits>
void write_as(const at::Tensor& t, Dtype dtype, const Element& element) {
  auto* base = static_cast<Bits*>(t.mutable_data_ptr());
  const int64_t batches = t.stride(0) == 0 ? 1 : t.size(0);  // kExpanded: one batch element in memory
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t h = 0; h < t.size(1); ++h)
      for (int64_t i = 0; i < t.size(2); ++i) {
        Bits* row = base + b * t.stride(0) + h * t.stride(1) + i * t.stride(2);
        for (int64_t d = 0; d < t.size(3); ++d) row[d * t.stride(3)] = static_cast<Bits>(encode(element({b, h, i, d}), dtype));
      }
}

void write(const at::Tensor& t, Dtype dtype, const Element& element) {
  dtype == Dtype::kFloat32 ? write_as<uint32_t>(t, dtype, element) : write_as<uint16_t>(t, dtype, element);
}

/// NaN, +Inf, −Inf and, where the dtype holds it, 1e30: in turn along the keys.
double poison_value(int64_t key, Dtype dtype) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kValues[] = {std::numeric_limits<double>::quiet_NaN(), kInf, -kInf, 1e30};
  return kValues[key % (dtype == Dtype::kFloat16 ? 3 : 4)];
}

/// `element`, but poison where no batch element that shares the memory may look.
Element poisoned(const Element& element, const Case& c, const std::vector<uint8_t>& kept) {
  const AttentionProblem p = c.problem;
  const bool shared = c.layout == Layout::kExpanded;
  return [=, &kept](const Place& at) {
    bool hidden = true;
    for (int64_t b = shared ? 0 : at.batch; b <= (shared ? p.batch - 1 : at.batch); ++b)
      hidden = hidden && kept[static_cast<size_t>(b * p.seqlen_kv + at.position)] == 0;
    return hidden ? poison_value(at.position + static_cast<int64_t>(c.seed % 4), p.dtype) : element(at);
  };
}

at::Tensor lse_gradient(const AttentionProblem& p, const Element& element) {
  at::Tensor t = at::empty({p.batch, p.num_heads_q, p.seqlen_q, 1}, at::kFloat);
  write(t, Dtype::kFloat32, element);
  return t.squeeze(3);
}

}  // namespace

Inputs materialise(const Case& c) {
  if (auto reason = c.invalid_reason()) throw UsageError("invalid case '" + to_string(c) + "': " + *reason);
  const Fills fills = fills_of(c);
  const std::vector<uint8_t> kept = kept_keys(c);
  Inputs in = allocate(c);
  const Dtype dtype = c.problem.dtype;
  write(in.q, dtype, fills.q);
  write(in.k, dtype, c.poison ? poisoned(fills.k, c, kept) : fills.k);
  write(in.v, dtype, c.poison ? poisoned(fills.v, c, kept) : fills.v);
  write(in.dout, dtype, fills.dout);
  if (c.dlse) in.dlse = lse_gradient(c.problem, fills.dlse);
  if (c.padding != KeyPadding::kNone) {
    in.key_padding_mask = at::empty({c.problem.batch, c.problem.seqlen_kv}, at::kBool);
    std::ranges::copy(kept, static_cast<uint8_t*>(in.key_padding_mask.mutable_data_ptr()));
  }
  return in;
}

}  // namespace attest
