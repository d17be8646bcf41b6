#include "harness/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/element.h"
#include "harness/error.h"
#include "harness/float_format.h"
#include "harness/judge_element.h"
#include "harness/reference.h"

namespace attest {
namespace {

struct Tally {
  Judged worst;
  int64_t worst_at = 0, failing = 0, undecided = 0, vacuous = 0;

  void add(int64_t i, const Judged& j) {
    failing += j.rank == Rank::kFail;
    undecided += j.rank == Rank::kUndecided;
    vacuous += j.rank == Rank::kVacuous;
    if (j.rank > worst.rank || (j.rank == worst.rank && j.headroom > worst.headroom)) worst = j, worst_at = i;
  }
};

template <class T>
Tally tally_as(const at::Tensor& actual, const Subject& s) {
  const T* a = actual.const_data_ptr<T>();
  Tally tally;
  for (int64_t i = 0; i < actual.numel(); ++i) tally.add(i, judge_element(s, i, static_cast<float>(a[i])));
  return tally;
}

Tally tally_elements(const at::Tensor& actual, const Subject& s) {
  switch (s.dtype) {
    case Dtype::kFloat16: return tally_as<at::Half>(actual, s);
    case Dtype::kBFloat16: return tally_as<at::BFloat16>(actual, s);
    case Dtype::kFloat32: break;
  }
  return tally_as<float>(actual, s);
}

at::Tensor bounds(const ReferenceQuantity& reference, const Tolerance& tolerance, const ErrorUnits& units,
                  const at::Tensor& actual, const at::Tensor* baseline) {
  if (tolerance.mode == Tolerance::Mode::kForwardError)
    return forward_error_bound(reference, units, actual.scalar_type()).mul_(tolerance.c);
  if (tolerance.mode != Tolerance::Mode::kTimesBaseline) return {};
  if (baseline == nullptr || !baseline->defined() || baseline->sizes() != reference.value.sizes())
    throw Error("a times_baseline contract needs the output of its baseline, of the reference's shape");
  return baseline_bound(*baseline, reference, tolerance.c, dtype_of(actual.scalar_type()));
}

std::string describe(const Comparison& c, const Tally& tally, const Tolerance& tolerance) {
  std::string text = fmt::format("actual {:.9g}, reference {:.9g}", c.actual, c.expected);
  if (!std::isfinite(c.actual) && c.failing > 0)
    text += fmt::format(": not finite where the reference {}", std::isfinite(c.expected) ? "is" : "is another infinity");
  else if (tolerance.mode == Tolerance::Mode::kBitwise)
    text += fmt::format(": bits {:#x} against {:#x}", c.actual_bits, c.expected_bits);
  else
    text += fmt::format(": error {:.3g} ({:.3g} ulp), bound {:.3g} of {}", c.error, c.error_ulps, c.bound, to_string(tolerance));
  if (c.outcome == Comparison::Outcome::kUndecided)
    text += std::isinf(c.bound) ? "; the baseline is not finite" : fmt::format("; the reference is known to ±{:.3g} alone", c.radius);
  if (tally.failing > 0) text += fmt::format("; {} of {} elements fail", tally.failing, c.elements);
  if (tally.vacuous > 0) text += fmt::format("; {} of {} bounds are vacuous", tally.vacuous, c.elements);
  return text;
}

void fill(Comparison& c, const Tally& tally, const at::Tensor& actual, const Subject& s) {
  const int64_t i = tally.worst_at;
  const Rank rank = tally.worst.rank;
  c.outcome = rank == Rank::kFail ? Comparison::Outcome::kFail
              : rank == Rank::kUndecided ? Comparison::Outcome::kUndecided
                                         : Comparison::Outcome::kPass;
  c.index = unravel(i, actual.sizes());
  c.actual = actual.flatten()[i].item<double>();
  c.expected = s.value[i];
  c.radius = s.radius[i];
  c.actual_bits = raw_bits(actual, i);
  c.expected_bits = bits_of(c.expected, s.dtype);
  c.bits_width = float_format(s.dtype).width;
  c.error = tally.worst.error;
  c.error_ulps = c.error == 0.0 ? 0.0 : c.error / ulp(c.expected, c.actual, s.dtype);
  c.bound = tally.worst.bound;
  c.headroom = tally.worst.headroom;
  c.failing = tally.failing;
  c.vacuous = tally.vacuous;
}

Comparison failed(std::string sentence) {
  return {.outcome = Comparison::Outcome::kFail, .sentence = std::move(sentence), .headroom = INFINITY};
}

bool is_output_type(at::ScalarType t) { return t == at::kHalf || t == at::kBFloat16 || t == at::kFloat; }

}  // namespace

at::Tensor baseline_bound(const at::Tensor& baseline, const ReferenceQuantity& reference, double n, Dtype dtype) {
  const FloatFormat format = float_format(dtype);
  const at::Tensor finite = reference.value.isfinite();
  const at::Tensor error = (baseline.to(at::kCPU, at::kDouble) - reference.value).abs().masked_fill(~finite, 0.0);
  const at::Tensor rounding = reference.value.abs() * format.unit_roundoff() + 0.5 * format.smallest_subnormal();
  return (rounding + n * error.max()).nan_to_num(INFINITY, INFINITY, INFINITY).contiguous();
}

Comparison compare(const at::Tensor& actual, const ReferenceQuantity& reference, const Tolerance& tolerance,
                   const ErrorUnits& units, const at::Tensor* baseline) {
  if (!reference.value.defined() || !reference.radius.defined()) throw Error("the reference does not hold this quantity");
  if (std::string reason = mismatch(actual, reference.value); !reason.empty()) return failed(std::move(reason));
  if (!is_output_type(actual.scalar_type()))
    return failed(fmt::format("actual has dtype {}, which no output has", at::toString(actual.scalar_type())));
  const at::Tensor a = actual.to(at::kCPU).contiguous();
  const at::Tensor value = reference.value.contiguous(), radius = reference.radius.contiguous();
  const at::Tensor low = reference.low.defined() ? reference.low.contiguous() : reference.low;
  const at::Tensor trivial = reference.trivial.defined() ? reference.trivial.contiguous() : reference.trivial;
  const at::Tensor bound = bounds(reference, tolerance, units, a, baseline);
  const Dtype dtype = dtype_of(a.scalar_type());
  const Subject subject{.value = value.const_data_ptr<double>(),
                        .low = low.defined() ? low.const_data_ptr<double>() : nullptr,
                        .radius = radius.const_data_ptr<double>(),
                        .trivial = trivial.defined() ? trivial.const_data_ptr<double>() : nullptr,
                        .bound = bound.defined() ? bound.const_data_ptr<double>() : nullptr,
                        .tolerance = tolerance,
                        .dtype = dtype,
                        .vacuity_floor = tolerance.c * float_format(dtype).smallest_subnormal()};
  const Tally tally = tally_elements(a, subject);
  Comparison c{.elements = a.numel()};
  fill(c, tally, a, subject);
  c.sentence = describe(c, tally, tolerance);
  return c;
}

}  // namespace attest
