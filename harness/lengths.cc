#include "harness/lengths.h"

#include <algorithm>
#include <array>

#include "harness/noise.h"

namespace attest {
namespace {

/// 0 and 1 in an eighth of the cases each, the longest in three, one beside a tile's edge in two, any in one.
int64_t length(int64_t longest, uint32_t how, uint32_t which) {
  constexpr std::array<int64_t, 12> kEdges = {15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129};
  const int64_t any = which % (longest + 1);
  switch (how % 8) {
    case 0:
      return 0;
    case 1:
      return 1;
    case 2:
    case 3:
      return longest >= kEdges[0] ? std::min(longest, kEdges[which % kEdges.size()]) : any;
    case 4:
      return any;
    default:
      return longest;
  }
}

Sequence drawn(const Case& c, int64_t n) {
  const AttentionProblem& p = c.problem;
  const Noise noise(c.seed);
  const PhiloxBlock keys = noise.block(Stream::kLengths, {.batch = n}), queries = noise.block(Stream::kLengths, {.batch = n, .dim = 1});
  const bool packed = c.sequences == Sequences::kPacked;
  Sequence s;
  s.n_kv = length(p.seqlen_kv, keys[0], keys[1]);
  s.n_q = length(p.seqlen_q, queries[0], queries[1]);
  if (queries[2] % 8 != 0 && !packed) s.n_q = p.seqlen_q;
  if (queries[2] % 4 != 0 && packed && p.seqlen_q == p.seqlen_kv) s.n_q = s.n_kv;
  return s;
}

/// Rows after the last packed sequence.
std::array<int64_t, 2> spare_rows(const Case& c) {
  const PhiloxBlock draw = Noise(c.seed).block(Stream::kLengths, {.dim = 2});
  if (draw[0] % 4 != 0) return {0, 0};
  const int64_t queries = 1 + draw[1] % 3;
  return {queries, c.problem.seqlen_q == c.problem.seqlen_kv ? queries : 1 + draw[2] % 3};
}

/// Of the queries or the keys, by the fields that say where they lie.
std::vector<DataRow> rows(const Case& c, int64_t batch, int64_t count, int64_t longest, const std::vector<Sequence>& sequences,
                      int64_t Sequence::*first, int64_t Sequence::*length) {
  const bool packed = c.sequences == Sequences::kPacked;
  std::vector<DataRow> all(static_cast<size_t>(batch * count));
  for (int64_t n = 0; n < batch * count; ++n) all[static_cast<size_t>(n)] = {n / count, n % count % longest, sequences.empty()};
  for (size_t n = 0; n < sequences.size(); ++n)
    for (int64_t i = 0; i < sequences[n].*length; ++i) {
      DataRow& row = all[static_cast<size_t>(sequences[n].batch * count + sequences[n].*first + i)];
      row = {packed ? static_cast<int64_t>(n) : row.batch, i, true};
    }
  return all;
}

}  // namespace

std::vector<Sequence> sequences_of(const Case& c) {
  std::vector<Sequence> all;
  if (c.sequences == Sequences::kWhole) return all;
  Sequence next;
  for (int64_t n = 0; n < c.problem.batch; ++n) {
    Sequence s = drawn(c, n);
    const bool packed = c.sequences == Sequences::kPacked, last = n + 1 == c.problem.batch;
    if (packed && last && next.q_begin + s.n_q == 0) s.n_q = 1;
    if (packed && last && next.kv_begin + s.n_kv == 0) s.n_kv = 1;
    s.batch = packed ? 0 : n;
    s.q_begin = next.q_begin;
    s.kv_begin = next.kv_begin;
    if (packed) next.q_begin += s.n_q, next.kv_begin += s.n_kv;
    all.push_back(s);
  }
  return all;
}

AttentionProblem tensors_of(const Case& c, const std::vector<Sequence>& sequences) {
  AttentionProblem p = c.problem;
  if (c.sequences != Sequences::kPacked) return p;
  const auto [queries, keys] = spare_rows(c);
  p.batch = 1;
  p.seqlen_q = sequences.back().q_begin + sequences.back().n_q + queries;
  p.seqlen_kv = sequences.back().kv_begin + sequences.back().n_kv + keys;
  return p;
}

std::vector<DataRow> query_rows(const Case& c, const AttentionProblem& tensors, const std::vector<Sequence>& sequences) {
  return rows(c, tensors.batch, tensors.seqlen_q, c.problem.seqlen_q, sequences, &Sequence::q_begin, &Sequence::n_q);
}

std::vector<DataRow> key_rows(const Case& c, const AttentionProblem& tensors, const std::vector<Sequence>& sequences) {
  return rows(c, tensors.batch, tensors.seqlen_kv, c.problem.seqlen_kv, sequences, &Sequence::kv_begin, &Sequence::n_kv);
}

}  // namespace attest
