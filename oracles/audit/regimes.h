// The cases of an audit: where the arithmetic of an oracle could go wrong.
#pragma once

#include <vector>

#include "harness/case.h"

namespace attest {

/// kThreshold: logits and products of (1 − β) around the places where an evaluation in double flushes to 0. kLong: rows of
/// thousands of keys, and columns of thousands of queries. kLarge: v large, dout small. kExtreme: |z| up to 2^60.
enum class Regime : uint8_t {
  kNormal, kSaturated, kExtreme, kThreshold, kCancelling, kEqual, kSubnormal, kLarge, kMasked, kLong
};
template <>
struct EnumNames<Regime> {
  static constexpr std::string_view kNames[] = {"normal", "saturated", "extreme", "threshold", "cancelling",
                                                "equal",  "subnormal", "large",   "masked",    "long"};
};

struct AuditCase {
  Regime regime = Regime::kNormal;
  Case inputs;  // one batch element, one KV head
};

struct AuditSizes {
  int64_t longest_row = 65536;  // the first long case of each operator is one query with so many keys
  int64_t head_dim = 256;       // largest
};

/// Cases of every regime of every operator, as many as give each its share of `elements`. A function of its arguments alone.
std::vector<AuditCase> audit_cases(int64_t elements, uint64_t seed, const AuditSizes& sizes);

/// Elements of all quantities of a case.
int64_t elements_of(const AttentionProblem& p);

}  // namespace attest
