#include "oracles/group_data.h"

#include <algorithm>
#include <limits>

#include "harness/error.h"
#include "harness/fill.h"
#include "harness/float_format.h"
#include "harness/mask.h"

namespace attest {
namespace {

std::vector<double> values(const Element& element, Dtype dtype, int64_t heads, int64_t rows, int64_t columns) {
  std::vector<double> x;
  x.reserve(heads * rows * columns);
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t d = 0; d < columns; ++d) x.push_back(round_to(element({0, h, i, d}), dtype));
  return x;
}

void hide(std::vector<double>& x, int64_t row, int64_t columns) {
  std::fill_n(x.begin() + row * columns, columns, std::numeric_limits<double>::quiet_NaN());
}

bool sees_a_key(const Mask& mask, int64_t i) {
  for (int64_t j = 0; j < mask.problem.seqlen_kv; ++j)
    if (mask.allows(0, i, j)) return true;
  return false;
}

void hide_what_nobody_sees(GroupData& data) {
  const AttentionProblem& p = data.source.problem;
  for (int64_t j = 0; j < p.seqlen_kv; ++j) {
    if (data.keep.empty() || data.keep[j] != 0) continue;
    hide(data.k, j, p.head_dim);
    hide(data.v, j, p.head_dim_v);
  }
  for (int64_t i = 0; i < p.seqlen_q && !data.dlse.empty(); ++i)
    if (!sees_a_key({p, data.keep.empty() ? nullptr : data.keep.data()}, i))
      for (int64_t h = 0; h < p.num_heads_q; ++h) hide(data.dlse, h * p.seqlen_q + i, 1);
}

}  // namespace

GroupProblem GroupData::problem() const {
  const AttentionProblem& p = source.problem;
  GroupProblem group{p.op, p.num_heads_q, p.seqlen_q, p.seqlen_kv, p.head_dim, p.head_dim_v, p.causal, p.attend_current,
                     p.softmax_scale, q.data(), k.data(), v.data(), dout.data()};
  group.dlse = dlse.empty() ? nullptr : dlse.data();
  group.keep = keep.empty() ? nullptr : keep.data();
  group.significand_bits = float_format(p.dtype).precision;
  return group;
}

GroupData group_data(const Case& c) {
  if (const auto reason = c.invalid_reason()) throw UsageError("invalid case '" + to_string(c) + "': " + *reason);
  const AttentionProblem& p = c.problem;
  if (p.batch != 1 || p.num_heads_kv != 1) throw UsageError("'" + to_string(c) + "' has more than one batch element or KV head");
  const Fills fills = fills_of(c);
  GroupData data{c};
  data.q = values(fills.q, p.dtype, p.num_heads_q, p.seqlen_q, p.head_dim);
  data.k = values(fills.k, p.dtype, 1, p.seqlen_kv, p.head_dim);
  data.v = values(fills.v, p.dtype, 1, p.seqlen_kv, p.head_dim_v);
  data.dout = values(fills.dout, p.dtype, p.num_heads_q, p.seqlen_q, p.head_dim_v);
  if (c.dlse) data.dlse = values(fills.dlse, Dtype::kFloat32, p.num_heads_q, p.seqlen_q, 1);
  for (int64_t j = 0; j < p.seqlen_kv && c.padding != KeyPadding::kNone; ++j) data.keep.push_back(keeps_key(c, 0, j));
  hide_what_nobody_sees(data);
  return data;
}

int64_t elements_of(const GroupProblem& p, Quantity quantity) {
  switch (quantity) {
    case Quantity::kOut: return p.group * p.n_q * p.head_dim_v;
    case Quantity::kLse: return p.group * p.n_q;
    case Quantity::kDq: return p.backward() ? p.group * p.n_q * p.head_dim : 0;
    case Quantity::kDk: return p.backward() ? p.n_kv * p.head_dim : 0;
    case Quantity::kDv: break;
  }
  return p.backward() ? p.n_kv * p.head_dim_v : 0;
}

GroupValues::GroupValues(const GroupProblem& problem) {
  for (size_t n = 0; n < of.size(); ++n) {
    const int64_t elements = elements_of(problem, static_cast<Quantity>(n));
    for (std::vector<double>* x : {&of[n].hi, &of[n].lo, &of[n].radius}) x->assign(elements, 0);
  }
}

GroupReference GroupValues::reference(bool two) {
  GroupReference reference;
  for (size_t n = 0; n < of.size(); ++n) {
    if (of[n].hi.empty()) continue;
    reference.of[n] = {of[n].hi.data(), two ? of[n].lo.data() : nullptr, of[n].radius.data()};
    reference.of[n].elements = reference.of[n].plane = static_cast<int64_t>(of[n].hi.size());
  }
  return reference;
}

}  // namespace attest
