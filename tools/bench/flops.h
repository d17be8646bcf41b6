// The least work and traffic that a pass of a problem needs, and the time that these take on a known machine.
#pragma once

#include <optional>
#include <string>

#include "tools/bench/cases.h"

namespace attest::bench {

/// What a machine can do at most.
struct Roof {
  double flops_per_second = 0;
  double bytes_per_second = 0;
  bool operator==(const Roof&) const = default;
};

/// Known for an H200 (bf16 matrix product 790 TFLOP/s as measured on random data, memory 4.8 TB/s by its data sheet); else
/// nothing.
std::optional<Roof> roof_of(const std::string& gpu);

/// (query, key) pairs that are visible by causality, over all batch elements and query heads.
double visible_pairs(const AttentionProblem& p);

/// Of the matrix products on visible pairs alone, a multiply-add counted as two: forward QKᵀ and PV; backward QKᵀ
/// again, dout·Vᵀ, dQ, dK, dV, which is 2.5 × the forward when D = Dv.
double flops(const AttentionProblem& p, Pass pass);

/// Each input read once, each output written once.
double bytes(const AttentionProblem& p, Pass pass);

/// max(flops / rate, bytes / bandwidth), in milliseconds.
double floor_ms(const AttentionProblem& p, Pass pass, const Roof& roof);

}  // namespace attest::bench
