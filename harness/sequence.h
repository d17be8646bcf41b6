// Sequences of different lengths in the tensors of one batch: packed one after another, or in buffers with room for more.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/enum_set.h"

namespace attest {

/// How the tensors hold sequences. kWhole: each batch element is one sequence and fills its buffers. kLengths: batch element b
/// uses its first n_q rows of q and its first n_kv of k and v, as in a KV cache. kPacked: one batch element [1, H, T, D], a view of
/// packed [T, H, D], holds them all one after another.
enum class Sequences : uint8_t { kWhole, kLengths, kPacked };
template <>
struct EnumNames<Sequences> {
  static constexpr std::string_view kNames[] = {"whole", "lengths", "packed"};
};

/// One sequence: queries [q_begin, q_begin + n_q) and keys [kv_begin, kv_begin + n_kv) of a batch element. Its query i stands
/// at n_kv − n_q + i, and sees keys of its own only. Rows that belong to none are as rows with no visible key.
struct Sequence {
  int64_t batch = 0, q_begin = 0, n_q = 0, kv_begin = 0, n_kv = 0;
  bool operator==(const Sequence&) const = default;
};

/// kLengths, one sequence for each batch element. Throws UsageError when the two differ in number.
std::vector<Sequence> with_lengths(const std::vector<int64_t>& seqlens_q, const std::vector<int64_t>& seqlens_kv);
/// kPacked; cu_seqlens: 0, then where each sequence ends. Throws UsageError when the two differ in number or begin elsewhere.
std::vector<Sequence> packed(const std::vector<int64_t>& cu_seqlens_q, const std::vector<int64_t>& cu_seqlens_kv);

/// Why these are not the sequences of tensors with `batch` elements of seqlen_q and seqlen_kv rows, or nothing: kWhole has none
/// listed, kLengths one for each batch element in order, kPacked one after another from row 0.
std::optional<std::string> sequences_invalid(Sequences kind, const std::vector<Sequence>& sequences, int64_t batch,
                                             int64_t seqlen_q, int64_t seqlen_kv);

/// What is left of them in rows [begin, begin + count) of the queries or of the keys, counted from `begin`.
std::vector<Sequence> clip_queries(std::vector<Sequence> sequences, int64_t begin, int64_t count);
std::vector<Sequence> clip_keys(std::vector<Sequence> sequences, int64_t begin, int64_t count);

}  // namespace attest
