#include "harness/float_format.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "harness/compare.h"
#include "harness/tensors.h"

namespace attest {

FloatFormat float_format(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat16: return {.precision = 11, .min_exponent = -14, .max_exponent = 15, .width = 16};
    case Dtype::kBFloat16: return {.precision = 8, .min_exponent = -126, .max_exponent = 127, .width = 16};
    case Dtype::kFloat32: break;
  }
  return {.precision = 24, .min_exponent = -126, .max_exponent = 127, .width = 32};
}

double FloatFormat::smallest_subnormal() const { return std::ldexp(1.0, min_exponent - precision + 1); }
double FloatFormat::unit_roundoff() const { return std::ldexp(1.0, -precision); }
double FloatFormat::overflow_threshold() const {
  return std::ldexp(2.0 - std::ldexp(1.0, -precision), max_exponent);
}

double ulp(double reference, double actual, Dtype dtype) {
  const FloatFormat format = float_format(dtype);
  const double x = std::fabs(reference);
  if (std::isnan(x)) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0.0) return format.smallest_subnormal();
  int exponent = std::isinf(x) ? format.max_exponent : std::ilogb(x);
  const bool power_of_two = std::isfinite(x) && std::ldexp(1.0, exponent) == x;
  if (power_of_two && std::fabs(actual) < x) --exponent;
  exponent = std::clamp(exponent, format.min_exponent, format.max_exponent);
  return std::ldexp(1.0, exponent - format.precision + 1);
}

double round_to(double x, Dtype dtype) {
  if (!std::isfinite(x) || x == 0.0) return x;
  const FloatFormat format = float_format(dtype);
  if (std::fabs(x) >= format.overflow_threshold()) return std::copysign(std::numeric_limits<double>::infinity(), x);
  const double spacing = ulp(x, x, dtype);
  return std::copysign(std::nearbyint(x / spacing) * spacing, x);  // the quotient and the product are exact
}

uint32_t bits_of(double x, Dtype dtype) {
  const auto rounded = static_cast<float>(round_to(x, dtype));  // exact
  switch (dtype) {
    case Dtype::kFloat16: return at::Half(rounded).x;
    case Dtype::kBFloat16: return at::BFloat16(rounded).x;
    case Dtype::kFloat32: break;
  }
  return std::bit_cast<uint32_t>(rounded);
}

}  // namespace attest
