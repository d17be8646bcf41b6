// What the laws share; see the header.
#include "properties/support.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "harness/float_format.h"
#include "harness/mask.h"

namespace attest {

RegisterPair::RegisterPair(const Property& law, EnumSet<Quantity> gradients) {
  const auto add = [&](const char* suffix, EnumSet<Quantity> judges) {
    Property p = law;
    p.name += suffix;
    p.judges = judges;
    Registry<Property>::instance().add(std::move(p));
  };
  add(".forward", kForward);
  add(".gradients", gradients);
}

Outputs snapshot(const Outputs& outputs) {
  Outputs copy;
  for (Quantity q : EnumSet<Quantity>::all().members())
    if (outputs[q].defined()) copy[q] = outputs[q].detach().to(at::kCPU, outputs[q].scalar_type(), false, /*copy=*/true);
  return copy;
}

std::optional<std::string> unsupported_reason(const KernelVariant& variant, const Inputs& inputs) {
  if (auto reason = inputs.problem.invalid_reason()) return reason;
  if (auto reason = variant.domain.excludes(inputs)) return reason;
  return variant.refuses ? variant.refuses(inputs) : std::nullopt;
}

Inputs sufficient(const Trial& trial, const Inputs& inputs) {
  return (trial.quantities() & kGradients).empty() ? inputs.forward_only() : inputs;
}

AttentionProblem longest(const Inputs& inputs) {
  AttentionProblem p = inputs.problem;
  if (inputs.kind == Sequences::kWhole) return p;
  p.seqlen_q = p.seqlen_kv = 1;
  for (const Sequence& s : inputs.sequences) {
    p.seqlen_q = std::max(p.seqlen_q, s.n_q);
    p.seqlen_kv = std::max(p.seqlen_kv, s.n_kv);
  }
  return p;
}

Blind blind(const Inputs& inputs) {
  const AttentionProblem& p = inputs.problem;
  const at::Tensor padded = padded_keys(inputs);
  Blind unseen{at::ones({p.batch, p.seqlen_q}, at::kBool), at::ones({p.batch, p.seqlen_kv}, at::kBool)};
  for (const Sequence& s : inputs.each_sequence()) {
    AttentionProblem one = p;
    one.seqlen_q = s.n_q, one.seqlen_kv = s.n_kv;
    bool* queries = unseen.queries.data_ptr<bool>() + s.batch * p.seqlen_q + s.q_begin;
    bool* keys = unseen.keys.data_ptr<bool>() + s.batch * p.seqlen_kv + s.kv_begin;
    const bool* hidden = padded.defined() ? padded.const_data_ptr<bool>() + s.batch * p.seqlen_kv + s.kv_begin : nullptr;
    const Mask mask{one};
    for (int64_t i = 0; i < s.n_q; ++i)
      for (int64_t j = 0; j < s.n_kv; ++j)
        if (mask.allows(0, i, j) && (hidden == nullptr || !hidden[j])) queries[i] = keys[j] = false;
  }
  return unseen;
}

at::Tensor padded_keys(const Inputs& inputs) {
  if (!inputs.key_padding_mask.defined()) return {};
  return inputs.key_padding_mask.to(at::kCPU).logical_not().contiguous();
}

namespace {

at::Tensor ulps_of(const at::Tensor& value, Dtype dtype) {
  at::Tensor out = at::empty_like(value);
  const double* from = value.const_data_ptr<double>();
  double* to = out.mutable_data_ptr<double>();
  for (int64_t i = 0; i < value.numel(); ++i) to[i] = ulp(from[i], from[i], dtype);
  return out;
}

}  // namespace

at::Tensor allowed_error(const ReferenceQuantity& reference, const Tolerance& tolerance, const ErrorUnits& units,
                         at::ScalarType type, const at::Tensor& baseline) {
  switch (tolerance.mode) {
    case Tolerance::Mode::kForwardError: return forward_error_bound(reference, units, type) * tolerance.c;
    case Tolerance::Mode::kBitwise: return at::zeros_like(reference.value);
    case Tolerance::Mode::kElementwise: return reference.value.abs() * tolerance.rtol + tolerance.atol;
    case Tolerance::Mode::kUlps: return ulps_of(reference.value.contiguous(), dtype_of(type)) * tolerance.c;
    case Tolerance::Mode::kTimesBaseline: return baseline_bound(baseline, reference, tolerance.c, dtype_of(type));
  }
  return at::zeros_like(reference.value);
}

std::string index_text(const std::vector<int64_t>& index) { return fmt::format("[{}]", fmt::join(index, ",")); }

std::string bits_text(uint64_t bits, int width) { return fmt::format("0x{:0{}x}", bits, width / 4); }

std::string element_text(std::string_view name, const at::Tensor& t, const std::vector<int64_t>& index) {
  at::Tensor element = t;
  for (int64_t i : index) element = element.select(0, i);
  element = element.clone();
  uint64_t bits = 0;  // little-endian
  std::memcpy(&bits, element.const_data_ptr(), element.element_size());
  const double value = element.to(at::kDouble).item<double>();
  return fmt::format("{}{} = {} ({})", name, index_text(index), std::isnan(value) ? "NaN" : fmt::format("{:.9g}", value),
                     bits_text(bits, static_cast<int>(element.element_size()) * 8));
}

std::optional<std::vector<int64_t>> first_true(const at::Tensor& mask) {
  const at::Tensor places = mask.nonzero();
  if (places.size(0) == 0) return std::nullopt;
  const at::Tensor first = places.select(0, 0).contiguous();
  return std::vector<int64_t>(first.const_data_ptr<int64_t>(), first.const_data_ptr<int64_t>() + first.numel());
}

}  // namespace attest
