#include "harness/contract.h"

#include <fmt/format.h>

namespace attest {
namespace {

/// Relative error of a sum of n terms, to first order. A matrix unit adds 16 products at a time and truncates.
double accumulation(Arithmetic::Accumulate how, int64_t n) {
  const auto terms = static_cast<double>(n);
  return how == Arithmetic::Accumulate::kMatrixUnit ? static_cast<double>((n + 15) / 16) * 0x1p-22 : terms * 0x1p-24;
}

/// Unit roundoff of what enters the matrix unit; fp32 operands are not rounded.
double operand_roundoff(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat16: return 0x1p-11;
    case Dtype::kBFloat16: return 0x1p-8;
    case Dtype::kFloat32: return 0.0;
  }
  return 0.0;
}

Tolerance with_factor(Tolerance::Mode mode, double factor) { return {.mode = mode, .c = factor}; }

}  // namespace

ErrorUnits error_units(const Arithmetic& arithmetic, const AttentionProblem& problem) {
  ErrorUnits units{};
  const auto set = [&](ErrorSource source, double unit) { units[static_cast<size_t>(source)] = unit; };
  const auto acc = [&](int64_t n) { return accumulation(arithmetic.accumulate, n); };
  const bool fp16_p = arithmetic.p_in_fp16_unscaled && problem.dtype == Dtype::kFloat16;
  set(ErrorSource::kDotQk, acc(problem.head_dim));
  set(ErrorSource::kDotV, acc(problem.head_dim_v));
  set(ErrorSource::kSumKv, acc(problem.seqlen_kv));
  set(ErrorSource::kSumQ, acc(problem.seqlen_q * problem.group()));
  set(ErrorSource::kUnit, 0x1p-24);
  set(ErrorSource::kOperand, arithmetic.operands_rounded ? operand_roundoff(problem.dtype) : 0.0);
  set(ErrorSource::kFlush, fp16_p ? 0x1p-25 : 0x1p-126);
  set(ErrorSource::kLse, arithmetic.p_from_lse ? 0x1p-24 : 0.0);
  return units;
}

Tolerance forward_error(double c) { return with_factor(Tolerance::Mode::kForwardError, c); }
Tolerance bitwise() { return with_factor(Tolerance::Mode::kBitwise, 0.0); }
Tolerance elementwise(double atol, double rtol) {
  return {.mode = Tolerance::Mode::kElementwise, .c = 0.0, .atol = atol, .rtol = rtol};
}
Tolerance ulps(double n) { return with_factor(Tolerance::Mode::kUlps, n); }
Tolerance times_baseline(double n) { return with_factor(Tolerance::Mode::kTimesBaseline, n); }

std::string to_string(const Tolerance& t) {
  switch (t.mode) {
    case Tolerance::Mode::kForwardError: return fmt::format("forward_error({})", t.c);
    case Tolerance::Mode::kBitwise: return "bitwise";
    case Tolerance::Mode::kElementwise: return fmt::format("elementwise({}, {})", t.atol, t.rtol);
    case Tolerance::Mode::kUlps: return fmt::format("ulps({})", t.c);
    case Tolerance::Mode::kTimesBaseline: return fmt::format("times_baseline({})", t.c);
  }
  return "unknown";
}

const Tolerance& ToleranceContract::of(Quantity q) const {
  const auto it = per_quantity.find(q);
  return it == per_quantity.end() ? tolerance : it->second;
}

}  // namespace attest
