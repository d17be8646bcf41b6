#include "harness/materialise.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "harness/encode.h"
#include "harness/error.h"
#include "harness/fill.h"
#include "harness/layout.h"
#include "harness/lengths.h"
#include "harness/tensors.h"

namespace attest {
namespace {

/// What each row of an operand holds; [batch, rows] of the tensors, row-major.
struct Rows {
  std::vector<DataRow> data;
  std::vector<uint8_t> hidden;  // 1: no query may look at it, or it is no query
  int64_t count = 0;            // a batch element
  bool shared = false;          // the batch elements share their memory: hidden where it is for all

  const DataRow& at(const Place& place) const { return data[static_cast<size_t>(place.batch * count + place.position)]; }
  bool hides(const Place& place, int64_t batch) const {
    bool all = true;
    for (int64_t b = shared ? 0 : place.batch; b <= (shared ? batch - 1 : place.batch); ++b)
      all = all && hidden[static_cast<size_t>(b * count + place.position)] != 0;
    return all;
  }
};

Rows rows_of(const Case& c, std::vector<DataRow> data, int64_t count, bool keys) {
  Rows rows{std::move(data), {}, count, c.layout == Layout::kExpanded};
  for (const DataRow& row : rows.data)
    rows.hidden.push_back(!row.inside || (keys && !keeps_key(c, row.batch, row.position)) ? 1 : 0);
  return rows;
}

template <class Bits>
void write_as(const at::Tensor& t, Dtype dtype, const Element& element) {
  auto* base = static_cast<Bits*>(t.mutable_data_ptr());
  const int64_t batches = t.stride(0) == 0 ? 1 : t.size(0);  // kExpanded: one batch element in memory
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t h = 0; h < t.size(1); ++h)
      for (int64_t i = 0; i < t.size(2); ++i) {
        Bits* row = base + b * t.stride(0) + h * t.stride(1) + i * t.stride(2);
        for (int64_t d = 0; d < t.size(3); ++d) row[d * t.stride(3)] = static_cast<Bits>(encode(element({b, h, i, d}), dtype));
      }
}

void write(const at::Tensor& t, Dtype dtype, const Element& element) {
  dtype == Dtype::kFloat32 ? write_as<uint32_t>(t, dtype, element) : write_as<uint16_t>(t, dtype, element);
}

/// NaN, +Inf, −Inf and, where the dtype holds it, 1e30: in turn along the keys.
double poison_value(int64_t key, Dtype dtype) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kValues[] = {std::numeric_limits<double>::quiet_NaN(), kInf, -kInf, 1e30};
  return kValues[key % (dtype == Dtype::kFloat16 ? 3 : 4)];
}

/// `element` where the rows' data lie; poison where no batch element that shares the memory may look.
Element placed(const Element& element, const Case& c, const Rows& rows, int64_t batch) {
  return [&, batch](const Place& at) {
    if (c.poison && rows.hides(at, batch)) return poison_value(at.position + static_cast<int64_t>(c.seed % 4), c.problem.dtype);
    const DataRow& row = rows.at(at);
    return element({row.batch, at.head, row.position, at.dim});
  };
}

at::Tensor lse_gradient(const AttentionProblem& p, const Element& element) {
  at::Tensor t = at::empty({p.batch, p.num_heads_q, p.seqlen_q, 1}, at::kFloat);
  write(t, Dtype::kFloat32, element);
  return t.squeeze(3);
}

at::Tensor padding_mask(const AttentionProblem& p, const Case& c, const Rows& keys) {
  at::Tensor mask = at::empty({p.batch, p.seqlen_kv}, at::kBool);
  std::ranges::transform(keys.data, mask.mutable_data_ptr<bool>(), [&](const DataRow& row) { return keeps_key(c, row.batch, row.position); });
  return mask;
}

}  // namespace

Inputs materialise(const Case& c) {
  if (auto reason = c.invalid_reason()) throw UsageError("invalid case '" + to_string(c) + "': " + *reason);
  const Fills fills = fills_of(c);
  const std::vector<Sequence> sequences = sequences_of(c);
  const AttentionProblem p = tensors_of(c, sequences);
  const Rows queries = rows_of(c, query_rows(c, p, sequences), p.seqlen_q, false);
  const Rows keys = rows_of(c, key_rows(c, p, sequences), p.seqlen_kv, true);
  Inputs in = allocate(c, p);
  in.kind = c.sequences;
  in.sequences = sequences;
  write(in.q, p.dtype, placed(fills.q, c, queries, p.batch));
  write(in.k, p.dtype, placed(fills.k, c, keys, p.batch));
  write(in.v, p.dtype, placed(fills.v, c, keys, p.batch));
  write(in.dout, p.dtype, placed(fills.dout, c, queries, p.batch));
  if (c.dlse) in.dlse = lse_gradient(p, placed(fills.dlse, c, queries, p.batch));
  if (c.padding != KeyPadding::kNone) in.key_padding_mask = padding_mask(p, c, keys);
  return in;
}

}  // namespace attest
