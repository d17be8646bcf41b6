// How fast the certified tiers are, forward and backward with radii, beside plain double and scalar multiprecision arithmetic.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/attention_problem.h"

namespace attest::bench {

/// One arithmetic on one problem.
struct OracleRow {
  Op op = Op::kSoftmax;
  int64_t seqlen = 0, head_dim = 0;
  std::string arithmetic;  // "plain double", "double", "double-double", "balls 128", "cpp_bin_float_50", …
  std::string lanes;       // "avx2", "avx512"; empty for the others
  int threads = 1;
  double seconds = 0;      // median of the samples; 0 when absent
  double over_plain = 0;   // seconds over those of plain double with the same lanes and one thread (the widest for the others)
  bool extrapolated = false;  // from a few rows
  std::string absent;         // why it was not measured
};

struct OracleBenchPlan {
  int repeats = 5;
  bool slow = true;  // balls and scalar types too
};

/// Softmax over all keys and causal stick-breaking, bf16 normal inputs, S = 256 D = 64, S = 1024 D = 128, S = 128 D = 64. Rows of
/// one problem are measured in turn, round after round; a sample is the mean of as many evaluations in a row as take
/// 40 ms, so that small problems are measured warm. `done` hears of each problem.
std::vector<OracleRow> bench_oracles(const OracleBenchPlan& plan,
                                     const std::function<void(const std::vector<OracleRow>&)>& done);

}  // namespace attest::bench
