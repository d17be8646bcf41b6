// stickbreaking.definition: stick-breaking attention as a product over the visible keys, nearest first, in 192-bit arithmetic.
// Unusual: no logarithm anywhere; 1 − β is σ(−z), and the backward's F grows from the farthest key, so that nothing nearly
// equal is subtracted. It promises value ± radius for every element, with the error terms of a kernel that works the same way
// in fp32; formulas in README.md.
#include <cmath>

#include "harness/oracle.h"
#include "harness/reference.h"
#include "harness/tensors.h"
#include "oracles/definition.h"

namespace attest {
namespace {

using Source = ErrorSource;

double to_double(const Wide& x) { return static_cast<double>(x); }

/// β = σ(z) and 1 − β = σ(−z), each with full relative accuracy.
void break_stick(Key& key) {
  const bool positive = key.z > 0;
  const Wide e = exp_nonpositive(positive ? Wide(-key.z) : key.z);
  const Wide large = 1 / (1 + e), small = e * large;
  key.beta = positive ? large : small;
  key.rest = positive ? small : large;
}

// Relative errors: of β, (1 − β) e_z + 8u; of 1 − β, β e_z + 8u. One more u for each product.
ErrorTerms beta_error(const Key& key) {
  return ErrorTerms().add(to_double(key.rest), key.z_error).add(Source::kUnit, kProbabilityUnits);
}
ErrorTerms rest_error(const Key& key) {
  return ErrorTerms().add(to_double(key.beta), key.z_error).add(Source::kUnit, kProbabilityUnits);
}

// A_j = β_j r_j, where r is what the visible keys nearer than j have left; rem is what all leave.
void forward(Row& row) {
  Wide rest = 1;
  ErrorTerms rest_relative;
  for (size_t n = row.keys.size(); n-- > 0;) {
    Key& key = row.keys[n];
    break_stick(key);
    key.weight = key.beta * rest;
    const double weight = to_double(key.weight);
    key.weight_error = ErrorTerms().add(weight, beta_error(key)).add(weight, rest_relative);
    key.weight_error.add(Source::kUnit, weight + kLost);
    key.flush = 1;
    rest *= key.rest;
    rest_relative.add(1, rest_error(key)).add(Source::kUnit, 1);
  }
  row.lse = rest;
  row.lse_error = ErrorTerms().add(to_double(rest), rest_relative).add(Source::kUnit, kLost);
  row.lse_trivial = 1;
}

// a_j = A_j dP_j; F_j = Σ_{l<j} a_l + drem·rem; dz_j = (1 − β_j) a_j − β_j F_j.
void backward(Row& row) {
  Wide far = row.lse * row.dlse;
  double far_sum = std::fabs(to_double(far));  // Σ |a_l| + |drem| rem: what the sum's rounding and no cancellation see
  ErrorTerms far_error = ErrorTerms().add(std::fabs(row.dlse), row.lse_error).add(Source::kUnit, far_sum + kUnderflow);
  far_error.add(Source::kSumKv, far_sum);
  for (Key& key : row.keys) {
    const Wide a = key.weight * key.dp;
    const double beta = to_double(key.beta), rest = to_double(key.rest), a_size = std::fabs(to_double(a));
    const double far_size = std::fabs(to_double(far));
    ErrorTerms a_error = ErrorTerms().add(std::fabs(to_double(key.dp)), key.weight_error);
    a_error.add(to_double(key.weight), key.dp_error).add(Source::kUnit, a_size + kUnderflow);
    key.dz = key.rest * a - key.beta * far;
    key.dz_error = ErrorTerms().add(rest * a_size, rest_error(key)).add(beta * far_size, beta_error(key));
    key.dz_error.add(rest, a_error).add(beta, far_error);
    key.dz_error.add(Source::kUnit, rest * a_size + beta * far_size + std::fabs(to_double(key.dz)) + 2 * kUnderflow);
    key.dz_error.add(Source::kUnit, kLost * (a_size + far_size));
    key.dz_trivial = rest * a_size + beta * far_sum;
    far += a;
    far_sum += a_size;
    far_error.add(1, a_error).add(Source::kSumKv, a_size);
  }
}

Reference evaluate_stickbreaking(const Inputs& inputs, size_t) {
  return evaluate(inputs,
                  {.oracle = "stickbreaking.definition", .no_key_lse = 1, .forward = forward, .backward = backward});
}

const Register<Oracle> registered{{
    .name = "stickbreaking.definition",
    .summary = "stick-breaking attention from its definition, in product form, 192 bits",
    .domain = {.ops = {Op::kStickBreaking}, .sequences = EnumSet<Sequences>::all(), .max_work = int64_t{1} << 18},
    .tiers = {"192 bits"},
    .evaluate = evaluate_stickbreaking,
}};

}  // namespace
}  // namespace attest
