#include "harness/element.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

namespace attest {

std::vector<int64_t> unravel(int64_t flat, at::IntArrayRef sizes) {
  std::vector<int64_t> index(sizes.size());
  for (size_t d = sizes.size(); d-- > 0; flat /= sizes[d]) index[d] = flat % sizes[d];
  return index;
}

uint64_t raw_bits(const at::Tensor& t, int64_t flat) {
  uint64_t bits = 0;
  const auto size = t.itemsize();
  std::memcpy(&bits, static_cast<const char*>(t.const_data_ptr()) + flat * static_cast<int64_t>(size), size);
  return bits;
}

std::string mismatch(const at::Tensor& actual, const at::Tensor& expected) {
  if (!actual.defined()) return "there is no actual tensor";
  if (!expected.defined()) return "there is nothing to compare with";
  if (actual.sizes() != expected.sizes())
    return fmt::format("actual has shape [{}], expected [{}]", fmt::join(actual.sizes(), ", "), fmt::join(expected.sizes(), ", "));
  if (actual.numel() == 0) return "there is nothing to compare: no element";
  return {};
}

}  // namespace attest
