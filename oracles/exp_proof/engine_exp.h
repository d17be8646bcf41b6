// The engine's own exp and log, out of line: what the proofs are about.
#pragma once

#include <cstdint>

namespace attest::exp_proof {

/// y = exp(x) or log(x) for n pairs, n a multiple of 8. The CPU must have AVX2 and FMA.
struct Pairs {
  double *h, *l;
};
void engine_exp_pairs(Pairs x, Pairs y, int64_t n);
void engine_exp_doubles(Pairs x, Pairs y, int64_t n);  // y.l = 0
void engine_log_pairs(Pairs x, Pairs y, int64_t n);

/// Relative errors that the engine claims of its pairs, and log's: error ≤ log · (1 + |log x|).
struct EngineClaims {
  double multiply, add, log;
};
EngineClaims engine_claims();

}  // namespace attest::exp_proof
