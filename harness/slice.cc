#include "harness/slice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "harness/error.h"

namespace attest {
namespace {

/// `f` on every tensor that is there.
template <class F>
Inputs each(const Inputs& in, F f) {
  Inputs out = in;
  for (at::Tensor* t : {&out.q, &out.k, &out.v, &out.dout, &out.dlse, &out.key_padding_mask})
    if (t->defined()) *t = f(*t);
  return out;
}

void check_range(const char* what, int64_t begin, int64_t count, int64_t size) {
  if (begin < 0 || count < 1 || begin + count > size)
    throw UsageError(fmt::format("cannot take {} [{}, {}) of {}", what, begin, begin + count, size));
}

void require_whole(const Inputs& in, const char* what) {
  if (in.kind != Sequences::kWhole) throw UsageError(fmt::format("{} are taken of whole batches, not of sequences", what));
}

/// Packed sequences [begin, begin + count).
Inputs slice_packed(const Inputs& in, int64_t begin, int64_t count) {
  check_range("sequences", begin, count, static_cast<int64_t>(in.sequences.size()));
  const Sequence &first = in.sequences[static_cast<size_t>(begin)], &last = in.sequences[static_cast<size_t>(begin + count - 1)];
  Inputs out = in;
  out.sequences.assign(in.sequences.begin() + begin, in.sequences.begin() + begin + count);
  out = narrow_queries(out, first.q_begin, last.q_begin + last.n_q - first.q_begin);
  return narrow_keys(out, first.kv_begin, last.kv_begin + last.n_kv - first.kv_begin);
}

/// index_select along the batch with the dims in the same order in memory.
at::Tensor gather(const at::Tensor& t, const at::Tensor& order) {
  std::vector<int64_t> outer_first(static_cast<size_t>(t.dim())), inverse(outer_first.size());
  std::iota(outer_first.begin(), outer_first.end(), 0);
  std::ranges::stable_sort(outer_first, [&](int64_t a, int64_t b) { return t.stride(a) > t.stride(b); });
  for (size_t i = 0; i < inverse.size(); ++i) inverse[static_cast<size_t>(outer_first[i])] = static_cast<int64_t>(i);
  return t.permute(outer_first).index_select(inverse[0], order.to(t.device())).permute(inverse);
}

/// A copy with the same strides, offset and bytes between the rows.
at::Tensor copy_with_gaps(const at::Tensor& t) {
  const auto elements = static_cast<int64_t>(t.storage().nbytes() / t.element_size());
  return t.as_strided({elements}, {1}, 0).clone().as_strided(t.sizes(), t.strides(), t.storage_offset());
}

/// `hidden` [B, Skv].
at::Tensor filled(const at::Tensor& t, const at::Tensor& hidden, double value) {
  const at::Tensor fill = at::full({}, value, at::kDouble).to(t.scalar_type());
  auto fill_in = [&](at::Tensor copy, const at::Tensor& rows) { return copy.masked_fill_(rows.unsqueeze(1).unsqueeze(3), fill); };
  if (t.size(0) == 1 || t.stride(0) != 0) return fill_in(copy_with_gaps(t), hidden);
  // One batch element in memory, which all share: kept so where all hide the same keys.
  const at::Tensor first = hidden.narrow(0, 0, 1);
  if (!hidden.equal(first.expand_as(hidden))) return fill_in(t.clone(at::MemoryFormat::Contiguous), hidden);
  return fill_in(copy_with_gaps(t.narrow(0, 0, 1)), first).expand_as(t);
}

at::Tensor with_tail(const at::Tensor& t, int64_t capacity) {
  const at::Tensor buffer =
      at::full({t.size(0), t.size(1), capacity, t.size(3)}, std::numeric_limits<double>::quiet_NaN(), t.options());
  at::Tensor view = buffer.narrow(2, 0, t.size(2));
  view.copy_(t);
  return view;
}

}  // namespace

Inputs narrow_queries(const Inputs& in, int64_t begin, int64_t count) {
  check_range("queries", begin, count, in.problem.seqlen_q);
  Inputs out = in;
  out.problem.seqlen_q = count;
  out.sequences = clip_queries(in.sequences, begin, count);
  for (at::Tensor* t : {&out.q, &out.dout, &out.dlse})
    if (t->defined()) *t = t->narrow(2, begin, count);
  return out;
}

Inputs narrow_keys(const Inputs& in, int64_t begin, int64_t count) {
  check_range("keys", begin, count, in.problem.seqlen_kv);
  Inputs out = in;
  out.problem.seqlen_kv = count;
  out.sequences = clip_keys(in.sequences, begin, count);
  out.k = in.k.narrow(2, begin, count);
  out.v = in.v.narrow(2, begin, count);
  if (in.key_padding_mask.defined()) out.key_padding_mask = in.key_padding_mask.narrow(1, begin, count);
  return out;
}

Inputs slice_batch(const Inputs& in, int64_t begin, int64_t count) {
  if (in.kind == Sequences::kPacked) return slice_packed(in, begin, count);
  check_range("batch elements", begin, count, in.problem.batch);
  Inputs out = each(in, [&](const at::Tensor& t) { return t.narrow(0, begin, count); });
  out.problem.batch = count;
  if (in.kind != Sequences::kLengths) return out;
  out.sequences.assign(in.sequences.begin() + begin, in.sequences.begin() + begin + count);
  for (Sequence& s : out.sequences) s.batch -= begin;
  return out;
}

Inputs slice_queries(const Inputs& in, int64_t begin, int64_t count) {
  require_whole(in, "chunks of queries");
  Inputs out = narrow_queries(in, begin, count);
  if (!in.problem.causal) return out;
  return narrow_keys(out, 0, in.problem.position(begin + count - 1) + 1);
}

Inputs first_keys(const Inputs& in, int64_t count) {
  require_whole(in, "the first keys");
  Inputs out = narrow_keys(in, 0, count);
  if (!in.problem.causal) return out;
  return narrow_queries(out, 0, in.problem.seqlen_q - (in.problem.seqlen_kv - count));
}

Inputs gather_batch(const Inputs& in, const std::vector<int64_t>& order) {
  for (int64_t b : order) check_range("batch elements", b, 1, in.problem.batch);
  if (in.kind == Sequences::kPacked) throw UsageError("packed sequences are not put in another order");
  if (order.empty()) throw UsageError("an order of batch elements must name one at least");
  const at::Tensor index = at::tensor(order, at::kLong);
  Inputs out = each(in, [&](const at::Tensor& t) { return gather(t, index); });
  out.problem.batch = static_cast<int64_t>(order.size());
  out.sequences.clear();
  for (int64_t b : in.kind == Sequences::kLengths ? order : std::vector<int64_t>()) {
    out.sequences.push_back(in.sequences[static_cast<size_t>(b)]);
    out.sequences.back().batch = static_cast<int64_t>(out.sequences.size()) - 1;
  }
  return out;
}

Inputs in_cache(const Inputs& in, int64_t capacity) {
  if (capacity < in.problem.seqlen_kv)
    throw UsageError(fmt::format("a cache of {} keys cannot hold {}", capacity, in.problem.seqlen_kv));
  Inputs out = in;
  out.k = with_tail(in.k, capacity);
  out.v = with_tail(in.v, capacity);
  return out;
}

Inputs fill_padded_keys(const Inputs& in, double value) {
  if (!in.key_padding_mask.defined()) return in;
  Inputs out = in;
  const at::Tensor hidden = in.key_padding_mask.logical_not();
  out.k = filled(in.k, hidden, value);
  out.v = filled(in.v, hidden, value);
  return out;
}

Outside outside_sequences(const Inputs& in) {
  const AttentionProblem& p = in.problem;
  Outside rows{at::ones({p.batch, p.seqlen_q}, at::kBool), at::ones({p.batch, p.seqlen_kv}, at::kBool)};
  for (const Sequence& s : in.each_sequence()) {
    rows.queries[s.batch].narrow(0, s.q_begin, s.n_q).fill_(false);
    rows.keys[s.batch].narrow(0, s.kv_begin, s.n_kv).fill_(false);
  }
  return rows;
}

Inputs fill_outside(const Inputs& in, double value) {
  const Outside rows = outside_sequences(in);
  const at::Tensor queries = rows.queries.to(in.q.device()), keys = rows.keys.to(in.q.device());
  Inputs out = in;
  out.q = filled(in.q, queries, value);
  out.k = filled(in.k, keys, value);
  out.v = filled(in.v, keys, value);
  if (in.dout.defined()) out.dout = filled(in.dout, queries, value);
  if (in.dlse.defined()) out.dlse = filled(in.dlse.unsqueeze(3), queries, value).squeeze(3);
  return out;
}

Inputs contiguous(const Inputs& in) {
  return each(in, [](const at::Tensor& t) { return t.clone(at::MemoryFormat::Contiguous); });
}

}  // namespace attest
