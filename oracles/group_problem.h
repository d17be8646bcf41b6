// One KV head of one sequence with the query heads that read it: what the certified tiers evaluate. Plain data, no tensors.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "harness/attention_problem.h"
#include "harness/quantity.h"

namespace attest {

/// Row-major, contiguous, widened to double (which holds every fp16, bf16 and fp32 value exactly). Rows that nobody may look
/// at may hold anything (NaN): they are never used. Query i of every head of the group stands at position n_kv − n_q + i.
struct GroupProblem {
  Op op = Op::kSoftmax;
  int64_t group = 1, n_q = 1, n_kv = 1, head_dim = 1, head_dim_v = 1;
  bool causal = false, attend_current = false;
  float softmax_scale = 1.0F;
  const double* q = nullptr;      // [group, n_q, head_dim]
  const double* k = nullptr;      // [n_kv, head_dim]
  const double* v = nullptr;      // [n_kv, head_dim_v]
  const double* dout = nullptr;   // [group, n_q, head_dim_v]; null: forward only
  const double* dlse = nullptr;   // [group, n_q], gradient of lse or rem; null: zeros
  const uint8_t* keep = nullptr;  // [n_kv], non-zero: the key exists; null: all do
  int significand_bits = 24;      // of the input dtype: 8, 11 or 24

  bool backward() const { return dout != nullptr; }
  int64_t rows() const { return group * n_q; }
  /// The number of keys from 0 on that causality leaves query i of any head: the mask of harness/mask.h, without `keep`.
  int64_t keys_in_reach(int64_t i) const {
    if (!causal) return n_kv;
    const int64_t reach = n_kv - n_q + i + (op == Op::kStickBreaking && !attend_current ? 0 : 1);
    return reach < 0 ? 0 : reach;
  }
};

/// Where one quantity goes, row-major. The true value lies within hi + lo ± radius; an infinite radius says nothing. lo may be
/// null: the rounding to double is then within the radius. A row without visible key, and a key that no query sees, get the
/// value that the definition gives, with radius 0.
struct GroupQuantity {
  double* hi = nullptr;
  double* lo = nullptr;
  double* radius = nullptr;
  double* terms = nullptr;    // one plane for each ErrorSource (harness/contract.h); null: not wanted
  double* trivial = nullptr;  // with `terms`: a bound on |value| known without computing it
  int64_t elements = 0;
  int64_t plane = 0;          // from one plane of terms to the next
};

/// By Quantity: out [group, n_q, head_dim_v], lse or rem [group, n_q], dq like q, dk like k, dv like v. The gradients are
/// untouched when there is no dout.
struct GroupReference {
  std::array<GroupQuantity, enum_size<Quantity>()> of;

  GroupQuantity& operator[](Quantity q) { return of[static_cast<size_t>(q)]; }
  const GroupQuantity& operator[](Quantity q) const { return of[static_cast<size_t>(q)]; }
};

/// The reason the tiers below cannot run on this CPU, or nothing.
std::optional<std::string> certified_unavailable();
/// Tier 0, double, and tier 1, double-double. The bits do not depend on `threads` nor on the machine. They throw Error where
/// the CPU has no FMA or the thread flushes subnormals, UsageError where a visible input is NaN or infinite.
void evaluate_double(const GroupProblem& problem, GroupReference& reference, int threads);
void evaluate_double_double(const GroupProblem& problem, GroupReference& reference, int threads);

/// Tier 2, ball arithmetic. The terms and trivial bounds stay untouched.
std::optional<std::string> balls_unavailable();  // the reason, where FLINT is absent
void evaluate_balls(const GroupProblem& problem, GroupReference& reference, int bits);

}  // namespace attest
