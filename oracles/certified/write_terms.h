// From the sums over planes to the terms of one element, by source.
#pragma once

#include "oracles/certified/block.h"
#include "oracles/error_units.h"

namespace attest::certified::ATTEST_LANES_NAMESPACE {

/// Stands for a weight that was flushed to 0: what it bounds is not 0 whatever the data, which would make the bound infinite.
inline constexpr double kTiny = 0x1p-900;

/// Where the terms of one element go; sources without a term keep 0.
struct TermWriter {
  const GroupQuantity& to;
  int64_t at;
  void operator()(ErrorSource source, double term) const {
    to.terms[static_cast<int64_t>(source) * to.plane + at] = term;
  }
  void trivial(double bound) const { to.trivial[at] = bound > 0 ? bound : kInfinity; }
};

/// The sums that make one element.
struct TermSums {
  double of[kSumPlanes];
  double flush, count;  // Σ |x| over what is visible, and its number
};

/// dq or dk, whose dz is rounded as operand, and summed once more over `sum`.
ATTEST_INLINE void write_gradient_terms(const TermWriter& write, const TermSums& s, double scale, ErrorSource sum) {
  write(ErrorSource::kDotQk, scale * s.of[kOfDotQk]);
  write(ErrorSource::kDotV, scale * s.of[kOfDotV]);
  write(ErrorSource::kSumKv, scale * s.of[kOfSumKv]);
  write(sum, scale * (s.of[kOfSize] + (sum == ErrorSource::kSumKv ? s.of[kOfSumKv] : 0)));
  write(ErrorSource::kUnit, scale * (s.of[kOfUnit] + s.of[kOfSize]) + kUnderflow * (scale * s.count + 1));
  write(ErrorSource::kOperand, scale * s.of[kOfSize]);
  write(ErrorSource::kFlush, scale * s.flush);
  write(ErrorSource::kLse, scale * s.of[kOfLse]);
  write.trivial(scale * s.of[kOfTrivial]);
}

/// dv: the weights, once more rounded by `lost` each, summed over rows.
ATTEST_INLINE void write_dv_terms(const TermWriter& write, const TermSums& s, bool softmax) {
  const double size = s.of[kOfSize];
  write(ErrorSource::kDotQk, s.of[kOfDotQk]);
  write(ErrorSource::kSumKv, softmax ? size : 0);
  write(ErrorSource::kSumQ, size);
  write(ErrorSource::kUnit, s.of[kOfUnit] + (softmax ? kLost * s.flush : 0) + kUnderflow * s.count);
  write(ErrorSource::kOperand, size);
  write(ErrorSource::kFlush, s.flush);
  write(ErrorSource::kLse, s.of[kOfLse]);
  write.trivial(size + kTiny * s.flush);
}

/// out: `flush` is what a weight lost to underflow may have been.
ATTEST_INLINE void write_out_terms(const TermWriter& write, const TermSums& s, bool softmax, double flush, double largest) {
  const double size = s.of[kOfSize];
  write(ErrorSource::kDotQk, s.of[kOfDotQk]);
  write(ErrorSource::kSumKv, softmax ? 2 * size : size);
  write(ErrorSource::kUnit, s.of[kOfUnit] + kUnderflow * s.count);
  write(ErrorSource::kOperand, size);
  write(ErrorSource::kFlush, flush * s.flush);
  write.trivial(largest);
}

}  // namespace attest::certified::ATTEST_LANES_NAMESPACE
