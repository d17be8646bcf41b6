// Tolerance contracts: what a variant may be trusted with. They live in the variant's record, with their reason.
#pragma once

#include <array>
#include <map>
#include <string>

#include "harness/attention_problem.h"
#include "harness/quantity.h"

namespace attest {

/// What a first-order error bound is made of: bound = Σ_source unit(source) · term(source) + output rounding, where the
/// terms are per-element sums an oracle takes from the data (oracles/README.md) and the units follow from the arithmetic.
enum class ErrorSource : uint8_t {
  kDotQk,     // acc(D): the sums over head_dim (z = q·k)
  kDotV,      // acc(Dv): the sums over head_dim_v (dP = dout·v)
  kSumKv,     // acc(Skv): sums over keys (out, the normaliser, δ, dq)
  kSumQ,      // acc(Sq · group): sums over queries and the heads of a group (dk, dv)
  kUnit,      // u = 2^-24: elementwise fp32 operations, exp and log
  kOperand,   // u_in: probabilities or dz rounded to the input dtype before a matrix unit; 0 when kept in fp32
  kFlush,     // η: probabilities (scaled to the row maximum) below η are lost
  kLse,       // u·|L|: probabilities recomputed from a stored lse
};
template <>
struct EnumNames<ErrorSource> {
  static constexpr std::string_view kNames[] = {"dot-qk", "dot-v", "sum-kv", "sum-q", "unit", "operand", "flush", "lse"};
};
using ErrorUnits = std::array<double, enum_size<ErrorSource>()>;

/// The arithmetic a variant declares.
struct Arithmetic {
  enum class Accumulate : uint8_t { kSequentialFp32, kMatrixUnit };
  Accumulate accumulate = Accumulate::kSequentialFp32;  // acc(n) = n·2^-24, or ⌈n/16⌉·2^-22
  bool operands_rounded = false;   // P, A or dz are rounded to the input dtype
  bool p_in_fp16_unscaled = false; // then η = 2^-25, else 2^-126
  bool p_from_lse = false;         // the backward recomputes P from a stored fp32 lse
};
ErrorUnits error_units(const Arithmetic& arithmetic, const AttentionProblem& problem);

struct Tolerance {
  enum class Mode : uint8_t { kForwardError, kBitwise, kElementwise, kUlps, kTimesBaseline };
  Mode mode = Mode::kForwardError;
  double c = 2.0;       // kForwardError: c × bound; kUlps: n; kTimesBaseline: n
  double atol = 0.0;    // kElementwise: |error| ≤ atol + rtol·|reference|
  double rtol = 0.0;
  bool operator==(const Tolerance&) const = default;
};
Tolerance forward_error(double c);
Tolerance bitwise();
Tolerance elementwise(double atol, double rtol);
Tolerance ulps(double n);
/// The error is at most n times that of a plain implementation in the same dtype (the op's `cpu.fixed_order` variant).
Tolerance times_baseline(double n);
/// E.g. "forward_error(2)".
std::string to_string(const Tolerance& t);

struct ToleranceContract {
  Tolerance tolerance;                           // for every quantity not named in `per_quantity`
  Arithmetic arithmetic;
  std::string reason;                            // why this and not tighter
  std::map<Quantity, Tolerance> per_quantity;
  const Tolerance& of(Quantity q) const;
};

}  // namespace attest
