// A tensor as the oracles read it: one row per (batch, head, position), in double, which holds every input value exactly.
#pragma once

#include <string>
#include <vector>

#include "oracles/wide.h"

namespace at {
class Tensor;
}

namespace attest {

class Operand {
 public:
  /// [B, H, S, width], any strides; `widen` also keeps the values as Wide. `name` is for the message of row().
  Operand(const at::Tensor& tensor, std::string name, bool widen);

  /// Index of a row, for the functions below. Throws UsageError where that row holds NaN or infinity: rows that no query
  /// may look at are never asked for.
  int64_t row(int64_t b, int64_t head, int64_t position) const;
  const double* at(int64_t row) const { return values_.data() + row * width_; }
  const Wide* wide(int64_t row) const { return wide_.data() + row * width_; }
  int low(int64_t row) const { return low_[row]; }

 private:
  std::string name_;
  int64_t heads_, length_, width_;
  std::vector<double> values_;
  std::vector<int> low_;  // lowest_bit of each row
  std::vector<Wide> wide_;
};

}  // namespace attest
