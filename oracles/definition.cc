#include "oracles/definition.h"

#include <algorithm>
#include <cmath>

#include "harness/error.h"
#include "harness/mask.h"
#include "harness/tensors.h"
#include "oracles/operand.h"
#include "oracles/quantity_writer.h"
#include "oracles/sequences.h"

namespace attest {
namespace {

using Source = ErrorSource;

ErrorUnits own_units(const AttentionProblem& p) {
  ErrorUnits units{};
  units[static_cast<size_t>(Source::kDotQk)] = kWideUnit * static_cast<double>(p.head_dim);
  units[static_cast<size_t>(Source::kDotV)] = kWideUnit * static_cast<double>(p.head_dim_v);
  units[static_cast<size_t>(Source::kSumKv)] = kWideUnit * static_cast<double>(p.seqlen_kv);
  units[static_cast<size_t>(Source::kSumQ)] = kWideUnit * static_cast<double>(p.seqlen_q * p.group());
  units[static_cast<size_t>(Source::kUnit)] = kWideUnit;
  return units;
}

/// cells[d] += weight · x[d], each with the error `share`·|x[d]|.
void accumulate(Cell* cells, int64_t n, const Wide& weight, const ErrorTerms& share, double trivial, const double* x,
                const Wide* wide) {
  for (int64_t d = 0; d < n; ++d) {
    cells[d].sum += weight * wide[d];
    cells[d].terms.add(std::fabs(x[d]), share);
    cells[d].trivial += trivial * std::fabs(x[d]);
    ++cells[d].count;
  }
}

/// A product with `magnitude` that is summed over `sum`, its left operand rounded to the input dtype.
ErrorTerms share_of(const ErrorTerms& error, double magnitude, Source sum, double flush) {
  ErrorTerms share = error;
  return share.add(sum, magnitude).add(Source::kOperand, magnitude).add(Source::kFlush, flush);
}

/// A gradient of q or k: `scale` times its sum over dz.
Cell scaled(Cell cell, const Wide& scale, double size) {
  cell.sum *= scale;
  cell.terms = ErrorTerms().add(size, cell.terms).add(Source::kUnit, kUnderflow * (size * cell.count + 1));
  cell.trivial *= size;
  return cell;
}

class Evaluation {
 public:
  Evaluation(const Inputs& in, const Definition& definition);
  Reference run();

 private:
  void query(int64_t b, int64_t h, int64_t i);
  void no_key(int64_t row);
  void find_keys(int64_t b, int64_t h, int64_t i);
  void put_forward(int64_t row);
  void put_dq(int64_t row);
  void add_to_keys(int64_t q_row);
  void put_keys(int64_t b, int64_t kv);
  int64_t key_row(int64_t j) const { return key_base_ + j; }

  const AttentionProblem& p_;
  const Definition& definition_;
  const bool backward_;
  Operand q_, k_, v_;
  std::vector<Operand> dout_;  // one, or none
  std::vector<double> dlse_;
  std::vector<uint8_t> keep_;
  Wide scale_;
  Reference reference_;
  std::vector<QuantityWriter> writers_;  // by Quantity
  Row row_;
  int64_t key_base_ = 0;                 // row of key 0 of the current KV head
  std::vector<Cell> out_, dq_, dk_, dv_;
};

Evaluation::Evaluation(const Inputs& in, const Definition& definition)
    : p_(in.problem), definition_(definition), backward_(in.backward()),
      q_(in.q, "q", backward_), k_(in.k, "k", backward_), v_(in.v, "v", true), scale_(in.problem.softmax_scale) {
  if (backward_) dout_.emplace_back(in.dout, "dout", true);
  if (backward_ && in.dlse.defined()) {
    const at::Tensor dlse = in.dlse.detach().to(at::kDouble).contiguous();
    dlse_.assign(dlse.const_data_ptr<double>(), dlse.const_data_ptr<double>() + dlse.numel());
  }
  if (in.key_padding_mask.defined()) {
    const at::Tensor mask = in.key_padding_mask.to(at::kByte).contiguous();
    keep_.assign(mask.const_data_ptr<uint8_t>(), mask.const_data_ptr<uint8_t>() + mask.numel());
  }
  const ErrorUnits units = own_units(p_);
  const std::vector<int64_t> rows = {p_.batch, p_.num_heads_q, p_.seqlen_q};
  const std::vector<int64_t> out = {p_.batch, p_.num_heads_q, p_.seqlen_q, p_.head_dim_v};
  writers_ = {{reference_[Quantity::kOut], out, units}, {reference_[Quantity::kLse], rows, units}};
  row_.head_dim = p_.head_dim;
  row_.head_dim_v = p_.head_dim_v;
  if (!backward_) return;
  writers_.emplace_back(reference_[Quantity::kDq], in.q.sizes(), units);
  writers_.emplace_back(reference_[Quantity::kDk], in.k.sizes(), units);
  writers_.emplace_back(reference_[Quantity::kDv], in.v.sizes(), units);
}

Reference Evaluation::run() {
  for (int64_t b = 0; b < p_.batch; ++b)
    for (int64_t kv = 0; kv < p_.num_heads_kv; ++kv) {
      key_base_ = (b * p_.num_heads_kv + kv) * p_.seqlen_kv;
      dk_.assign(backward_ ? p_.seqlen_kv * p_.head_dim : 0, Cell());
      dv_.assign(backward_ ? p_.seqlen_kv * p_.head_dim_v : 0, Cell());
      for (int64_t g = 0; g < p_.group(); ++g)
        for (int64_t i = 0; i < p_.seqlen_q; ++i) query(b, kv * p_.group() + g, i);
      if (backward_) put_keys(b, kv);
    }
  reference_.oracle = definition_.oracle;
  return std::move(reference_);
}

void Evaluation::query(int64_t b, int64_t h, int64_t i) {
  const int64_t row = (b * p_.num_heads_q + h) * p_.seqlen_q + i;
  find_keys(b, h, i);
  if (row_.keys.empty()) return no_key(row);
  definition_.forward(row_);
  put_forward(row);
  if (!backward_) return;
  const int64_t dout_row = dout_[0].row(b, h, i);
  for (Key& key : row_.keys) {
    const int64_t r = key_row(key.index);
    const Dot dp = dot(dout_[0].at(dout_row), v_.at(r), p_.head_dim_v, dout_[0].low(dout_row) + v_.low(r));
    key.dp = dp.value;
    key.dp_dot = dp.absolute;
    key.dp_error = ErrorTerms().add(Source::kDotV, dp.absolute).add(Source::kUnit, p_.head_dim_v * kUnderflow);
  }
  row_.dlse = dlse_.empty() ? 0 : dlse_[row];
  if (!std::isfinite(row_.dlse)) throw UsageError("dlse or drem holds NaN or infinity in a row with visible keys");
  definition_.backward(row_);
  put_dq(row);
  add_to_keys(row);
}

void Evaluation::no_key(int64_t row) {
  for (int64_t d = 0; d < p_.head_dim_v; ++d) writers_[0].put_exactly(row * p_.head_dim_v + d, 0);
  writers_[1].put_exactly(row, definition_.no_key_lse);
  for (int64_t d = 0; backward_ && d < p_.head_dim; ++d) writers_[2].put_exactly(row * p_.head_dim + d, 0);
}

void Evaluation::find_keys(int64_t b, int64_t h, int64_t i) {
  const Mask mask{p_, keep_.empty() ? nullptr : keep_.data()};
  const double size = std::fabs(static_cast<double>(p_.softmax_scale));
  row_.keys.clear();
  row_.lse_error = {};
  for (int64_t j = 0; j < p_.seqlen_kv; ++j) {
    if (!mask.allows(b, i, j)) continue;
    const int64_t q_row = q_.row(b, h, i), k_row = k_.row(b, p_.kv_head(h), j);
    v_.row(b, p_.kv_head(h), j);  // refuses what is not finite
    const Dot z = dot(q_.at(q_row), k_.at(k_row), p_.head_dim, q_.low(q_row) + k_.low(k_row));
    Key& key = row_.keys.emplace_back();
    key.index = j;
    key.z = z.value * scale_;
    key.z_dot = size * z.absolute;
    key.z_error.add(Source::kDotQk, key.z_dot)
        .add(Source::kUnit, 2 * std::fabs(static_cast<double>(key.z)) + kUnderflow * (size * p_.head_dim + 1));
  }
}

void Evaluation::put_forward(int64_t row) {
  out_.assign(p_.head_dim_v, Cell());
  for (const Key& key : row_.keys) {
    const ErrorTerms share = share_of(key.weight_error, static_cast<double>(key.weight), Source::kSumKv, key.flush);
    const int64_t r = key_row(key.index);
    accumulate(out_.data(), p_.head_dim_v, key.weight, share, 0, v_.at(r), v_.wide(r));
    for (int64_t d = 0; d < p_.head_dim_v; ++d) out_[d].trivial = std::max(out_[d].trivial, std::fabs(v_.at(r)[d]));
  }
  for (int64_t d = 0; d < p_.head_dim_v; ++d) {
    out_[d].terms.add(Source::kUnit, kUnderflow * out_[d].count);
    writers_[0].put(row * p_.head_dim_v + d, out_[d]);
  }
  writers_[1].put(row, {row_.lse, row_.lse_error, row_.lse_trivial, 1});
}

void Evaluation::put_dq(int64_t row) {
  const double size = std::fabs(static_cast<double>(p_.softmax_scale));
  dq_.assign(p_.head_dim, Cell());
  for (const Key& key : row_.keys) {
    const double dz = std::fabs(static_cast<double>(key.dz));
    const int64_t r = key_row(key.index);
    accumulate(dq_.data(), p_.head_dim, key.dz, share_of(key.dz_error, dz, Source::kSumKv, 1).add(Source::kUnit, dz),
               key.dz_trivial, k_.at(r), k_.wide(r));
  }
  for (int64_t d = 0; d < p_.head_dim; ++d) writers_[2].put(row * p_.head_dim + d, scaled(dq_[d], scale_, size));
}

void Evaluation::add_to_keys(int64_t q_row) {
  for (const Key& key : row_.keys) {
    const double dz = std::fabs(static_cast<double>(key.dz)), weight = static_cast<double>(key.weight);
    accumulate(&dk_[key.index * p_.head_dim], p_.head_dim, key.dz,
               share_of(key.dz_error, dz, Source::kSumQ, 1).add(Source::kUnit, dz), key.dz_trivial, q_.at(q_row), q_.wide(q_row));
    accumulate(&dv_[key.index * p_.head_dim_v], p_.head_dim_v, key.weight, share_of(key.weight_error, weight, Source::kSumQ, 1),
               weight, dout_[0].at(q_row), dout_[0].wide(q_row));
  }
}

void Evaluation::put_keys(int64_t b, int64_t kv) {
  const double size = std::fabs(static_cast<double>(p_.softmax_scale));
  const int64_t dk_base = (b * p_.num_heads_kv + kv) * p_.seqlen_kv * p_.head_dim;
  for (int64_t i = 0; i < static_cast<int64_t>(dk_.size()); ++i) {
    if (dk_[i].count == 0) writers_[3].put_exactly(dk_base + i, 0);
    else writers_[3].put(dk_base + i, scaled(dk_[i], scale_, size));
  }
  const int64_t dv_base = (b * p_.num_heads_kv + kv) * p_.seqlen_kv * p_.head_dim_v;
  for (int64_t i = 0; i < static_cast<int64_t>(dv_.size()); ++i) {
    dv_[i].terms.add(Source::kUnit, kUnderflow * dv_[i].count);
    if (dv_[i].count == 0) writers_[4].put_exactly(dv_base + i, 0);
    else writers_[4].put(dv_base + i, dv_[i]);
  }
}

}  // namespace

Reference evaluate(const Inputs& inputs, const Definition& definition) {
  return evaluate_sequences(inputs, [&](const Inputs& one) { return Evaluation(one, definition).run(); });
}

}  // namespace attest
