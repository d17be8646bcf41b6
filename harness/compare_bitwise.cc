#include <fmt/format.h>

#include <cmath>

#include "harness/compare.h"
#include "harness/element.h"
#include "harness/float_format.h"
#include "harness/tensors.h"

namespace attest {
namespace {

struct Differences {
  int64_t count = 0, first = -1, first_nan = -1;
  int64_t worst() const { return first_nan >= 0 ? first_nan : std::max<int64_t>(first, 0); }
};

/// `infinity` is the bit pattern of +∞; a type without NaN gives all ones, which nothing exceeds.
template <class Bits>
Differences differences(const at::Tensor& a, const at::Tensor& e, Bits infinity, bool nan_may_equal) {
  constexpr Bits kMagnitude = static_cast<Bits>(~Bits{0}) >> 1;
  const auto is_nan = [&](Bits x) { return infinity <= kMagnitude && static_cast<Bits>(x & kMagnitude) > infinity; };
  const auto* pa = static_cast<const Bits*>(a.const_data_ptr());
  const auto* pe = static_cast<const Bits*>(e.const_data_ptr());
  Differences d;
  for (int64_t i = 0; i < a.numel(); ++i) {
    const bool nan = is_nan(pa[i]);
    if (nan ? nan_may_equal && is_nan(pe[i]) : pa[i] == pe[i]) continue;
    ++d.count;
    if (d.first < 0) d.first = i;
    if (nan && d.first_nan < 0) d.first_nan = i;
  }
  return d;
}

Differences differences(const at::Tensor& a, const at::Tensor& e, bool nan_may_equal) {
  switch (a.scalar_type()) {
    case at::kHalf: return differences<uint16_t>(a, e, 0x7C00, nan_may_equal);
    case at::kBFloat16: return differences<uint16_t>(a, e, 0x7F80, nan_may_equal);
    case at::kFloat: return differences<uint32_t>(a, e, 0x7F800000, nan_may_equal);
    case at::kDouble: return differences<uint64_t>(a, e, 0x7FF0000000000000, nan_may_equal);
    default: break;
  }
  const at::Tensor bytes_a = a.view(-1).view(at::kByte), bytes_e = e.view(-1).view(at::kByte);
  Differences d = differences<uint8_t>(bytes_a, bytes_e, 0xFF, nan_may_equal);
  if (d.first >= 0) d.first /= static_cast<int64_t>(a.itemsize());
  return d;
}

void fill(Comparison& c, const Differences& d, const at::Tensor& a, const at::Tensor& e) {
  const int64_t i = d.worst();
  c.index = unravel(i, a.sizes());
  c.actual = a.flatten()[i].item<double>();
  c.expected = e.flatten()[i].item<double>();
  c.actual_bits = raw_bits(a, i);
  c.expected_bits = raw_bits(e, i);
  c.bits_width = static_cast<int>(a.itemsize()) * 8;
  c.error = d.count == 0 || c.actual == c.expected ? 0.0 : std::fabs(c.actual - c.expected);
  if (c.error > 0.0 && (a.scalar_type() == at::kHalf || a.scalar_type() == at::kBFloat16 || a.scalar_type() == at::kFloat))
    c.error_ulps = c.error / ulp(c.expected, c.actual, dtype_of(a.scalar_type()));
  c.headroom = d.count == 0 ? 0.0 : INFINITY;
  c.failing = d.count;
}

std::string describe(const Comparison& c) {
  if (c.failing == 0) return fmt::format("the bits of all {} elements are equal", c.elements);
  const int digits = c.bits_width / 4;
  std::string text = fmt::format("actual {:.9g} (bits {:0{}x}), expected {:.9g} (bits {:0{}x})", c.actual, c.actual_bits, digits,
                                 c.expected, c.expected_bits, digits);
  if (std::isnan(c.actual)) text += ": NaN equals nothing";
  return text + fmt::format("; {} of {} elements differ", c.failing, c.elements);
}

}  // namespace

Comparison compare_bitwise(const at::Tensor& actual, const at::Tensor& expected, bool nan_may_equal) {
  Comparison c{.headroom = INFINITY};
  c.sentence = mismatch(actual, expected);
  if (c.sentence.empty() && actual.scalar_type() != expected.scalar_type())
    c.sentence = fmt::format("actual has dtype {}, expected {}", at::toString(actual.scalar_type()),
                             at::toString(expected.scalar_type()));
  if (!c.sentence.empty()) return c;
  const at::Tensor a = actual.to(at::kCPU).contiguous(), e = expected.to(at::kCPU).contiguous();
  const Differences d = differences(a, e, nan_may_equal);
  c.elements = a.numel();
  c.outcome = d.count == 0 ? Comparison::Outcome::kPass : Comparison::Outcome::kFail;
  fill(c, d, a, e);
  c.sentence = describe(c);
  return c;
}

}  // namespace attest
