// What is computed: operator, sizes, dtype, mask. The definitions of both operators are in oracles/README.md.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

#include "harness/enum_set.h"

namespace attest {

enum class Op : uint8_t { kSoftmax, kStickBreaking };
enum class Dtype : uint8_t { kFloat16, kBFloat16, kFloat32 };
enum class Device : uint8_t { kCpu, kCuda };

template <>
struct EnumNames<Op> {
  static constexpr std::string_view kNames[] = {"softmax", "stickbreaking"};
};
template <>
struct EnumNames<Dtype> {
  static constexpr std::string_view kNames[] = {"fp16", "bf16", "fp32"};
};
template <>
struct EnumNames<Device> {
  static constexpr std::string_view kNames[] = {"cpu", "cuda"};
};

/// q [B, Hq, Sq, D], k [B, Hkv, Skv, D], v [B, Hkv, Skv, Dv]; out and gradients have the input dtype;
/// lse (softmax, natural log) and rem (stick-breaking) are fp32 [B, Hq, Sq].
/// Query head h reads KV head h / (Hq / Hkv). Query i stands at position p_i = Skv − Sq + i.
struct AttentionProblem {
  Op op = Op::kSoftmax;
  Dtype dtype = Dtype::kBFloat16;
  int64_t batch = 1;
  int64_t num_heads_q = 1;
  int64_t num_heads_kv = 1;
  int64_t seqlen_q = 1;
  int64_t seqlen_kv = 1;
  int64_t head_dim = 1;
  int64_t head_dim_v = 1;
  bool causal = false;          // softmax: key j visible iff j ≤ p_i. Always true for stick-breaking.
  bool attend_current = false;  // stick-breaking: j ≤ p_i rather than j < p_i. Always false for softmax.
  float softmax_scale = 1.0F;   // z = softmax_scale · q·k; finite, any sign, 0 included

  bool operator==(const AttentionProblem&) const = default;

  int64_t group() const { return num_heads_q / num_heads_kv; }
  int64_t kv_head(int64_t head_q) const { return head_q / group(); }
  int64_t position(int64_t query) const { return seqlen_kv - seqlen_q + query; }
  /// Multiply-adds of one full pass, Σ Sq·Skv·(D + Dv): what an oracle's domain limits.
  int64_t work() const;
  /// The reason this problem is refused, or nothing.
  std::optional<std::string> invalid_reason() const;
};

/// The fp32 number nearest to 1/√head_dim.
float default_softmax_scale(int64_t head_dim);

std::ostream& operator<<(std::ostream& os, const AttentionProblem& p);

}  // namespace attest
