#include "oracles/operand.h"

#include <utility>

#include "harness/error.h"
#include "harness/tensors.h"

namespace attest {

Operand::Operand(const at::Tensor& tensor, std::string name, bool widen)
    : name_(std::move(name)), heads_(tensor.size(1)), length_(tensor.size(2)), width_(tensor.size(3)) {
  const at::Tensor copy = tensor.detach().to(at::kDouble).contiguous();
  values_.assign(copy.const_data_ptr<double>(), copy.const_data_ptr<double>() + copy.numel());
  const int64_t rows = tensor.size(0) * heads_ * length_;
  low_.reserve(rows);
  for (int64_t r = 0; r < rows; ++r) low_.push_back(lowest_bit(at(r), width_));
  if (!widen) return;
  wide_.resize(values_.size());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = r * width_; low_[r] != kNotFinite && i < (r + 1) * width_; ++i) wide_[i] = values_[i];
}

int64_t Operand::row(int64_t b, int64_t head, int64_t position) const {
  const int64_t r = (b * heads_ + head) * length_ + position;
  if (low_[r] == kNotFinite)
    throw UsageError(name_ + " holds NaN or infinity where a query may look: the operators define nothing there");
  return r;
}

}  // namespace attest
