// What `attest bench` measures: the one list of cases, and their names.
#pragma once

#include <string>
#include <vector>

#include "harness/attention_problem.h"

namespace attest::bench {

/// kForward: out and lse or rem. kBoth: dq, dk and dv too, in one run. kGraph: as kForward, but replayed from a CUDA graph, so
/// that launches cost nothing, the cache not flushed.
enum class Pass : uint8_t { kForward, kBoth, kGraph };

/// kNormal: every tensor normally distributed. kLongRange: also, but logits around −8, so that a stick-breaking query gives weight
/// to thousands of keys and nothing can be left out; of normal values it uses its stick up within a few hundred.
enum class Values : uint8_t { kNormal, kLongRange };

struct BenchCase {
  std::string name;  // shape_name(problem), and "-long" for kLongRange; with the operator it names the case
  AttentionProblem problem;
  Device device = Device::kCuda;  // measured on this device alone
  Values values = Values::kNormal;

  bool operator==(const BenchCase&) const = default;
};

/// Every case of every operator.
std::vector<BenchCase> bench_cases();

/// Derived from the tensors: decode-1k (Sq = 1, Skv = 1024), prefill-512 (Sq = Skv), batch4-prefill-128,
/// chunk-64-of-256 (neither); "-h16" where every query head has a KV head of its own, with "-d64" where D is not 128; "-full"
/// where every query sees every key.
std::string shape_name(const AttentionProblem& p);

}  // namespace attest::bench

namespace attest {
template <>
struct EnumNames<bench::Values> {
  static constexpr std::string_view kNames[] = {"normal", "long-range"};
};
template <>
struct EnumNames<bench::Pass> {
  static constexpr std::string_view kNames[] = {"forward", "forward+backward", "forward, CUDA graph"};
};
}  // namespace attest
