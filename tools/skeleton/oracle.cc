// NAME.definition: copy this file to oracles/, rename, put your definition in; every variant is then compared with it.
// What it is: softmax attention by its textbook formulas, in 192-bit arithmetic.
// What is unusual: δ is not shifted, so gradients of saturated rows lose all their digits; see oracles/softmax.cc for the cure.
// What it promises: value ± radius for every element, and the terms of its error bound (oracles/README.md).
#include <cmath>
#include <limits>

#include "harness/oracle.h"
#include "harness/tensors.h"
#include "oracles/definition.h"

namespace attest {
namespace {

// Logits → weights. Errors are absolute and of first order.
void forward(Row& row) {
  Wide sum = 0;
  for (Key& key : row.keys) sum += key.weight = exp(key.z);
  row.lse = log(sum);
  for (Key& key : row.keys) row.lse_error.add(static_cast<double>(key.weight /= sum), key.z_error);
  row.lse_error.add(ErrorSource::kSumKv, 1).add(ErrorSource::kUnit, 2 * (1 + std::fabs(static_cast<double>(row.lse))));
  row.lse_trivial = std::numeric_limits<double>::infinity();
  for (Key& key : row.keys) {
    const auto weight = static_cast<double>(key.weight);
    key.weight_error = ErrorTerms().add(weight, key.z_error).add(weight, row.lse_error);
    key.weight_error.add(ErrorSource::kUnit, kProbabilityUnits * weight);
    key.flush = 1;
  }
}

// dP → dz = P (dP − δ + dlse), δ = Σ P dP.
void backward(Row& row) {
  Wide delta = 0;
  ErrorTerms delta_error;
  for (const Key& key : row.keys) {
    const double weight = static_cast<double>(key.weight), dp = std::fabs(static_cast<double>(key.dp));
    delta += key.weight * key.dp;
    delta_error.add(weight, key.dp_error).add(dp, key.weight_error).add(ErrorSource::kSumKv, weight * dp);
  }
  for (Key& key : row.keys) {
    const double weight = static_cast<double>(key.weight), dp = std::fabs(static_cast<double>(key.dp));
    const Wide t = key.dp - delta + row.dlse;
    const double size = std::fabs(static_cast<double>(t));
    key.dz = key.weight * t;
    key.dz_error = ErrorTerms().add(size, key.weight_error).add(weight, key.dp_error).add(weight, delta_error);
    key.dz_error.add(ErrorSource::kUnit, weight * (3 * size + dp + std::fabs(row.dlse)));
    key.dz_trivial = std::numeric_limits<double>::infinity();
  }
}

const Register<Oracle> registered{{
    .name = "NAME.definition",
    .summary = "one line",
    .domain = {.ops = {Op::kSoftmax}, .sequences = EnumSet<Sequences>::all(), .max_work = int64_t{1} << 18},
    .tiers = {"192 bits"},
    .evaluate = [](const Inputs& inputs, size_t) {
      return evaluate(inputs, {.oracle = "NAME.definition", .no_key_lse = -std::numeric_limits<double>::infinity(),
                               .forward = forward, .backward = backward});
    },
}};

}  // namespace
}  // namespace attest
