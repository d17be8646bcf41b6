// The tensors a kernel gives back.
#pragma once

#include "harness/attention_problem.h"

namespace attest {

/// kLse is lse for softmax and rem for stick-breaking.
enum class Quantity : uint8_t { kOut, kLse, kDq, kDk, kDv };
template <>
struct EnumNames<Quantity> {
  static constexpr std::string_view kNames[] = {"out", "lse", "dq", "dk", "dv"};
};

/// "rem" for kLse of stick-breaking, else name_of(q).
inline std::string_view quantity_name(Op op, Quantity q) {
  return q == Quantity::kLse && op == Op::kStickBreaking ? "rem" : name_of(q);
}

/// dk and dv: one element for each key, summed over the queries and the heads of a group.
inline bool sums_over_queries(Quantity q) { return q == Quantity::kDk || q == Quantity::kDv; }

}  // namespace attest
