#include "harness/sequence.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/error.h"

namespace attest {
namespace {

using Reason = std::optional<std::string>;

/// Of sequence number n.
Reason range_outside(size_t n, const char* what, int64_t begin, int64_t count, int64_t rows) {
  if (count < 0) return fmt::format("sequence {} has {} {}", n, count, what);
  if (begin < 0 || begin > rows || count > rows - begin)
    return fmt::format("sequence {} has {} [{}, {}) of tensors with {}", n, what, begin, begin + count, rows);
  return std::nullopt;
}

Reason misplaced(size_t n, const Sequence& s, const Sequence& expected) {
  if (s.batch != expected.batch) return fmt::format("sequence {} lies in batch element {}, not in {}", n, s.batch, expected.batch);
  if (s.q_begin != expected.q_begin)
    return fmt::format("sequence {} begins at query {}, not at {}", n, s.q_begin, expected.q_begin);
  if (s.kv_begin != expected.kv_begin)
    return fmt::format("sequence {} begins at key {}, not at {}", n, s.kv_begin, expected.kv_begin);
  return std::nullopt;
}

Reason wrong_number(Sequences kind, size_t number, int64_t batch) {
  const auto given = static_cast<int64_t>(number);
  if (kind == Sequences::kWhole && given != 0) return "sequences are given, yet each batch element is said to be a whole one";
  if (kind == Sequences::kLengths && given != batch) return fmt::format("{} lengths are given for {} batch elements", given, batch);
  if (kind == Sequences::kPacked && batch != 1) return fmt::format("packed tensors are one batch element, not {}", batch);
  if (kind == Sequences::kPacked && given == 0) return "packed tensors hold no sequence";
  return std::nullopt;
}

void clip(int64_t& first, int64_t& length, int64_t begin, int64_t count) {
  const int64_t lo = std::clamp<int64_t>(first - begin, 0, count);
  const int64_t hi = std::clamp<int64_t>(first + length - begin, 0, count);
  first = lo;
  length = hi - lo;
}

}  // namespace

std::vector<Sequence> with_lengths(const std::vector<int64_t>& seqlens_q, const std::vector<int64_t>& seqlens_kv) {
  if (seqlens_q.size() != seqlens_kv.size()) throw UsageError("seqlens_q and seqlens_kv name different numbers of sequences");
  std::vector<Sequence> out;
  for (size_t b = 0; b < seqlens_q.size(); ++b) out.push_back({static_cast<int64_t>(b), 0, seqlens_q[b], 0, seqlens_kv[b]});
  return out;
}

std::vector<Sequence> packed(const std::vector<int64_t>& cu_seqlens_q, const std::vector<int64_t>& cu_seqlens_kv) {
  if (cu_seqlens_q.size() != cu_seqlens_kv.size()) throw UsageError("cu_seqlens_q and cu_seqlens_kv name different numbers of sequences");
  if (cu_seqlens_q.empty() || cu_seqlens_q[0] != 0 || cu_seqlens_kv[0] != 0) throw UsageError("cu_seqlens must begin with 0");
  std::vector<Sequence> out;
  for (size_t s = 0; s + 1 < cu_seqlens_q.size(); ++s)
    out.push_back({0, cu_seqlens_q[s], cu_seqlens_q[s + 1] - cu_seqlens_q[s], cu_seqlens_kv[s],
                   cu_seqlens_kv[s + 1] - cu_seqlens_kv[s]});
  return out;
}

std::optional<std::string> sequences_invalid(Sequences kind, const std::vector<Sequence>& sequences, int64_t batch,
                                             int64_t seqlen_q, int64_t seqlen_kv) {
  if (auto reason = wrong_number(kind, sequences.size(), batch)) return reason;
  Sequence expected;
  for (size_t n = 0; n < sequences.size(); ++n) {
    const Sequence& s = sequences[n];
    if (auto reason = range_outside(n, "queries", s.q_begin, s.n_q, seqlen_q)) return reason;
    if (auto reason = range_outside(n, "keys", s.kv_begin, s.n_kv, seqlen_kv)) return reason;
    if (auto reason = misplaced(n, s, expected)) return reason;
    if (kind == Sequences::kLengths) expected.batch += 1;
    if (kind == Sequences::kPacked) expected.q_begin += s.n_q, expected.kv_begin += s.n_kv;
  }
  return std::nullopt;
}

std::vector<Sequence> clip_queries(std::vector<Sequence> sequences, int64_t begin, int64_t count) {
  for (Sequence& s : sequences) clip(s.q_begin, s.n_q, begin, count);
  return sequences;
}

std::vector<Sequence> clip_keys(std::vector<Sequence> sequences, int64_t begin, int64_t count) {
  for (Sequence& s : sequences) clip(s.kv_begin, s.n_kv, begin, count);
  return sequences;
}

}  // namespace attest
