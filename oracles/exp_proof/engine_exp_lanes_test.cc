#include "oracles/exp_proof/engine_exp.h"

#define ATTEST_LANES_NAMESPACE exp_proof_lanes
#include "oracles/certified/exp.h"

namespace attest::exp_proof {
namespace {

namespace lanes = certified::exp_proof_lanes;

template <class Function>
void for_each(Pairs x, Pairs y, int64_t n, const Function& function) {
  for (int64_t i = 0; i < n; i += lanes::kLanes) {
    const lanes::Two result = function(lanes::Two{lanes::load(x.h + i), lanes::load(x.l + i)});
    lanes::store(y.h + i, result.h);
    lanes::store(y.l + i, result.l);
  }
}

}  // namespace

void engine_exp_pairs(Pairs x, Pairs y, int64_t n) {
  for_each(x, y, n, [](lanes::Two a) { return lanes::exponential<lanes::DoubleDouble>(a); });
}
void engine_exp_doubles(Pairs x, Pairs y, int64_t n) {
  for_each(x, y, n, [](lanes::Two a) { return lanes::exponential<lanes::Double>(a); });
}
void engine_log_pairs(Pairs x, Pairs y, int64_t n) {
  for_each(x, y, n, [](lanes::Two a) { return lanes::log_double_double(a); });
}

EngineClaims engine_claims() { return {lanes::DoubleDouble::kMul, lanes::DoubleDouble::kAdd, lanes::kLogError}; }

}  // namespace attest::exp_proof
