// softmax.definition: softmax attention as DESIGN's formulas read, in 192-bit arithmetic. Unusual: the gradient subtracts the
// arg-max key's dP before anything else, so that saturated rows keep their relative accuracy. It promises value ± radius for
// every element, with the error terms of a kernel that works the same way in fp32; formulas in README.md.
#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/oracle.h"
#include "harness/reference.h"
#include "harness/tensors.h"
#include "oracles/definition.h"

namespace attest {
namespace {

using Source = ErrorSource;

double to_double(const Wide& x) { return static_cast<double>(x); }

size_t argmax(const Row& row) {
  size_t best = 0;
  for (size_t n = 1; n < row.keys.size(); ++n)
    if (row.keys[n].z > row.keys[best].z) best = n;
  return best;
}

// e_P, relative: e_z + Σ P e_z + acc(Skv) + 8u. lse: Σ P e_z + acc(Skv) + 2u(1 + |L|).
void forward(Row& row) {
  const Wide max = row.keys[argmax(row)].z;
  Wide sum = 0;
  for (Key& key : row.keys) sum += key.weight = exp_nonpositive(key.z - max);
  const Wide inverse = 1 / sum;
  row.lse = max + log(sum);
  ErrorTerms mean;
  for (Key& key : row.keys) mean.add(to_double(key.weight *= inverse), key.z_error);
  row.lse_error = mean;
  row.lse_error.add(Source::kSumKv, 1).add(Source::kUnit, 2 * (1 + std::fabs(to_double(row.lse))));
  row.lse_trivial = std::numeric_limits<double>::infinity();
  mean.add(Source::kSumKv, 1).add(Source::kUnit, kProbabilityUnits);
  for (Key& key : row.keys) {
    const double weight = to_double(key.weight);
    key.weight_error = ErrorTerms().add(weight, key.z_error).add(weight, mean);
    key.flush = to_double(inverse);  // e^(m − L)
  }
}

// The key whose dP a kernel subtracts: the first maximum of *its* logits, which is any of those that rounding may have
// lifted above the others. `low` and `high` enclose their dP.
struct Shift {
  size_t argmax;
  int candidates = 0;
  double low, high;
  double dot = 0;  // largest Σ|dout||v| among them

  /// The largest |dP_j − dP_*| that a kernel may form.
  double distance(double dp) const { return std::max(dp - low, high - dp); }
};

Shift find_shift(const Row& row) {
  constexpr double kUnit = 0x1p-24;
  const double dim = static_cast<double>(row.head_dim);
  const double accumulate = std::max(dim * kUnit, std::ceil(dim / 16) * 4 * kUnit);
  const auto reach = [&](const Key& key) {
    return 2 * (accumulate * key.z_dot + kUnit * key.z_error[Source::kUnit]);  // for contracts up to c = 2
  };
  Shift shift{argmax(row)};
  const Key& top = row.keys[shift.argmax];
  shift.low = shift.high = to_double(top.dp);
  for (const Key& key : row.keys) {
    if (to_double(top.z - key.z) > reach(top) + reach(key)) continue;
    ++shift.candidates;
    shift.low = std::min(shift.low, to_double(key.dp));
    shift.high = std::max(shift.high, to_double(key.dp));
    shift.dot = std::max(shift.dot, key.dp_dot);
  }
  return shift;
}

// d_j = dP_j − dP_*, s = Σ P d, dz_j = P_j (d_j − s + dlse). d_* is exactly 0, its error too.
void backward(Row& row) {
  const Shift shift = find_shift(row);
  const Wide base = row.keys[shift.argmax].dp;
  const double lse = std::fabs(to_double(row.lse));
  Wide s = 0;
  ErrorTerms s_error;
  std::vector<ErrorTerms> d_errors(row.keys.size());
  double mean = 0;  // Σ P |d|
  for (size_t n = 0; n < row.keys.size(); ++n) {
    Key& key = row.keys[n];
    const double weight = to_double(key.weight), distance = shift.distance(to_double(key.dp));
    key.weight_error.add(Source::kLse, weight * lse).add(Source::kUnit, kLost);
    key.dp -= base;
    if (n != shift.argmax || shift.candidates > 1)
      d_errors[n].add(1, key.dp_error).add(Source::kDotV, shift.dot)
          .add(Source::kUnit, distance + row.head_dim_v * kUnderflow);
    s += key.weight * key.dp;
    mean += weight * distance;
    s_error.add(distance, key.weight_error).add(weight, d_errors[n]).add(Source::kSumKv, weight * distance)
        .add(Source::kUnit, kUnderflow);
  }
  for (size_t n = 0; n < row.keys.size(); ++n) {
    Key& key = row.keys[n];
    const double weight = to_double(key.weight);
    const Wide difference = key.dp - s;
    const Wide t = difference + row.dlse;
    const double size = std::fabs(to_double(t));
    key.dz = key.weight * t;
    key.dz_error = ErrorTerms().add(weight, d_errors[n]).add(weight, s_error).add(size, key.weight_error);
    key.dz_error.add(Source::kUnit, weight * (std::fabs(to_double(difference)) + 2 * size) + kUnderflow);
    key.dz_trivial = weight * (std::fabs(to_double(key.dp)) + mean + std::fabs(row.dlse));
  }
}

Reference evaluate_softmax(const Inputs& inputs, size_t) {
  return evaluate(inputs, {.oracle = "softmax.definition", .no_key_lse = -std::numeric_limits<double>::infinity(),
                           .forward = forward, .backward = backward});
}

const Register<Oracle> registered{{
    .name = "softmax.definition",
    .summary = "softmax attention from its definition, 192 bits",
    .domain = {.ops = {Op::kSoftmax}, .sequences = EnumSet<Sequences>::all(), .max_work = int64_t{1} << 18},
    .tiers = {"192 bits"},
    .evaluate = evaluate_softmax,
}};

}  // namespace
}  // namespace attest
