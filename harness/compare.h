// Comparators. Accept only when error ≤ bound; a non-finite actual fails before anything is masked; an empty comparison fails.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/contract.h"

namespace at {
class Tensor;
}

namespace attest {

struct ReferenceQuantity;

/// The outcome for one quantity, with its worst element; kept on a pass too.
struct Comparison {
  enum class Outcome : uint8_t { kPass, kFail, kUndecided };
  Outcome outcome = Outcome::kFail;
  std::string quantity;            // "out", "rem", …
  std::string sentence;            // what was compared and why it fails, e.g. "actual is NaN, reference is finite"
  std::vector<int64_t> index;      // of the worst element
  double actual = 0, expected = 0, radius = 0;
  uint64_t actual_bits = 0, expected_bits = 0;  // in the output dtype
  int bits_width = 0;                           // 16 or 32
  double error = 0;                // |actual − expected|
  double error_ulps = 0;           // in spacings of the output dtype at |expected|
  double bound = 0;                // the tolerance at that element (c included)
  double headroom = 0;             // error / bound of the worst element: > 1 fails; bitwise: 0 or inf
  int64_t elements = 0, failing = 0, vacuous = 0;
};
template <>
struct EnumNames<Comparison::Outcome> {
  static constexpr std::string_view kNames[] = {"pass", "fail", "undecided"};
};

/// Spacing of `dtype` at |reference|, taken in the binade below when |reference| is a power of two and |actual| is smaller;
/// never under the smallest subnormal.
double ulp(double reference, double actual, Dtype dtype);

/// `baseline` is needed by kTimesBaseline alone. `actual` may live anywhere; any strides.
/// With error e and radius r: e + r ≤ bound passes, e − r > bound fails, else undecided. A non-finite actual fails, unless the
/// reference is the same infinity or so large that a value in contract rounds to it. kForwardError: an element whose bound
/// exceeds `trivial` is vacuous; it fails only when |actual| > trivial + bound, and its headroom is relative to that.
/// kTimesBaseline: n × the largest error of the baseline, never under the rounding to the output dtype.
/// Throws Error when the reference or the baseline cannot be used (NaN, absent).
Comparison compare(const at::Tensor& actual, const ReferenceQuantity& reference, const Tolerance& tolerance,
                   const ErrorUnits& units, const at::Tensor* baseline = nullptr);

/// What kTimesBaseline allows, float64 and shaped as the reference: n times the largest error of the baseline, never under
/// what rounding to `dtype` costs, which no kernel can avoid. Infinite when the baseline is not finite: nothing is decided.
at::Tensor baseline_bound(const at::Tensor& baseline, const ReferenceQuantity& reference, double n, Dtype dtype);

/// Shape, dtype and bit pattern; +0 ≠ −0; NaNs equal whatever their payload. NaN fails unless `nan_may_equal`
/// (purity: the same run twice).
Comparison compare_bitwise(const at::Tensor& actual, const at::Tensor& expected, bool nan_may_equal = false);

}  // namespace attest
