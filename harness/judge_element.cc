#include "harness/judge_element.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/compare.h"
#include "harness/error.h"
#include "harness/float_format.h"

namespace attest {
namespace {

/// a + b = high + low exactly (Knuth, TAOCP vol. 2, 4.2.2, theorem B); finite operands.
struct Sum {
  double high, low;
};
Sum two_sum(double a, double b) {
  const double s = a + b, t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}

double add_up(double a, double b) {
  const Sum s = two_sum(a, b);
  return s.low > 0 ? std::nextafter(s.high, INFINITY) : s.high;
}
double add_down(double a, double b) { return -add_up(-a, -b); }

bool at_most(const Sum& x, double bound) { return x.high < bound || (x.high == bound && x.low <= 0); }
bool exceeds(const Sum& x, double bound) { return x.high > bound || (x.high == bound && x.low > 0); }

/// A true value: within high + low ± radius.
struct Bracket {
  double high, low, radius;

  bool exact() const { return low == 0.0 && radius == 0.0; }  // then ±0 keeps its sign
  double least() const { return exact() ? high : add_down(high, add_down(low, -radius)); }
  double most() const { return exact() ? high : add_up(high, add_up(low, radius)); }
};

/// |actual − (high + low)| lies within size + rest ± radius.
struct Distance {
  double size, rest, radius;
};
Distance distance(double actual, const Bracket& b) {
  const Sum difference = two_sum(actual, -b.high);
  const Sum small = two_sum(difference.low, -b.low);
  const Sum sum = two_sum(difference.high, small.high);
  return {std::fabs(sum.high), std::signbit(sum.high) ? -sum.low : sum.low, add_up(b.radius, std::fabs(small.low))};
}

double ratio(double error, double bound) { return error == 0.0 ? 0.0 : bound == 0.0 ? INFINITY : error / bound; }

Judged decide(const Distance& d, double bound_least, double bound_most, double bound, double headroom) {
  if (at_most(two_sum(d.size, add_up(d.rest, d.radius)), bound_least)) return {Rank::kPass, d.size, bound, headroom};
  if (exceeds(two_sum(d.size, add_down(d.rest, -d.radius)), bound_most)) return {Rank::kFail, d.size, bound, headroom};
  return {Rank::kUndecided, d.size, bound, headroom};
}

/// A NaN fails. An infinity passes where the reference is the same infinity, or lies in the last binade and a value within
/// the bound of it rounds to infinity; it is undecided where the radius reaches that far.
Judged judge_non_finite(double actual, const Bracket& b, double bound, bool vacuous, Dtype dtype) {
  const bool same_side = std::isinf(actual) && std::signbit(actual) == std::signbit(b.high);
  if (same_side && std::isinf(b.high)) return {Rank::kPass};
  const double threshold = float_format(dtype).overflow_threshold();
  if (std::isinf(actual) && !(std::max(std::fabs(b.least()), std::fabs(b.most())) <= threshold / 2) &&
      std::fabs(b.high) <= threshold / 2)
    return {Rank::kUndecided, INFINITY, bound, INFINITY};
  if (!same_side || vacuous || std::fabs(b.high) <= threshold / 2) return {Rank::kFail, INFINITY, bound, INFINITY};
  const bool beyond = std::fabs(b.high) >= threshold;
  const Distance missing = beyond ? Distance{0, 0, b.radius} : distance(std::copysign(threshold, b.high), b);
  Judged judged = decide(missing, bound, bound, bound, ratio(missing.size, bound));
  if (judged.rank == Rank::kFail) judged.error = judged.headroom = INFINITY;
  return judged;
}

/// Bits equal those of the true value rounded to the output dtype; undecided where the radius leaves more than one choice.
Judged judge_bits(double actual, const Bracket& b, Dtype dtype) {
  const auto same = [](double x, double y) { return x == y && std::signbit(x) == std::signbit(y); };
  const double lo = round_to(b.least(), dtype), hi = round_to(b.most(), dtype);
  const double error = std::fabs(actual - b.high);
  if (same(lo, hi) && same(actual, lo)) return {Rank::kPass, error};
  if (!same(lo, hi) && lo <= actual && actual <= hi) return {Rank::kUndecided, error, 0.0, INFINITY};
  return {Rank::kFail, error, 0.0, INFINITY};
}

/// A vacuous element passes while |actual| ≤ trivial + bound: no value in contract lies beyond.
Judged judge_vacuous(double actual, double error, double bound, double trivial) {
  const double limit = trivial + bound;
  const double size = std::fabs(actual);
  return {size <= limit ? Rank::kVacuous : Rank::kFail, error, bound, ratio(size, limit)};
}

/// The tolerance at element i, were its true value `reference`.
double tolerance_at(const Subject& s, int64_t i, double reference, double actual) {
  if (s.bound != nullptr) return s.bound[i];
  if (s.tolerance.mode == Tolerance::Mode::kUlps) return s.tolerance.c * ulp(reference, actual, s.dtype);
  if (s.tolerance.mode == Tolerance::Mode::kElementwise) return s.tolerance.atol + s.tolerance.rtol * std::fabs(reference);
  return 0.0;
}

/// The bound exceeds what is known without computing anything.
bool is_vacuous(const Subject& s, int64_t i, double bound) {
  if (s.tolerance.mode != Tolerance::Mode::kForwardError) return false;
  return std::isinf(bound) || (s.trivial != nullptr && bound > s.trivial[i] + s.vacuity_floor);
}

}  // namespace

/// Negated comparisons: a NaN never passes.
Judged judge_element(const Subject& s, int64_t i, double actual) {
  const Bracket b{s.value[i], s.low == nullptr ? 0.0 : s.low[i], s.radius[i]};
  if (std::isnan(b.high)) throw Error(fmt::format("the reference is NaN at element {}", i));
  if (std::isinf(b.high)) return judge_non_finite(actual, b, 0.0, false, s.dtype);
  const double bound = tolerance_at(s, i, b.high, actual);
  if (std::isnan(bound) || std::isnan(b.radius) || std::isnan(b.low))
    throw Error(fmt::format("the reference's bound is NaN at element {}", i));
  const bool vacuous = is_vacuous(s, i, bound);
  if (!std::isfinite(actual)) return judge_non_finite(actual, b, bound, vacuous, s.dtype);
  if (s.tolerance.mode == Tolerance::Mode::kBitwise) return judge_bits(actual, b, s.dtype);
  const Distance d = distance(actual, b);
  if (vacuous) return judge_vacuous(actual, d.size, bound, s.trivial == nullptr ? INFINITY : s.trivial[i]);
  const double headroom = ratio(d.size, bound);
  if (std::isinf(bound) || std::isinf(b.radius)) return {Rank::kUndecided, d.size, bound, headroom};
  const double one_end = tolerance_at(s, i, b.least(), actual), other_end = tolerance_at(s, i, b.most(), actual);
  return decide(d, std::min({bound, one_end, other_end}), std::max({bound, one_end, other_end}), bound, headroom);
}

}  // namespace attest
