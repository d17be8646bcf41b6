// Inputs and outputs of a batch, sequence by sequence.
#include <algorithm>
#include <functional>
#include <limits>

#include "harness/tensors.h"

namespace attest {
namespace {

at::Tensor rows(const at::Tensor& t, int64_t batch, int64_t begin, int64_t count) {
  return t.defined() ? t.narrow(0, batch, 1).narrow(2, begin, count) : t;
}

/// Where the sequence's part of a quantity lies in the whole.
at::Tensor part_of(const at::Tensor& whole, Quantity q, const Sequence& s) {
  return sums_over_queries(q) ? rows(whole, s.batch, s.kv_begin, s.n_kv) : rows(whole, s.batch, s.q_begin, s.n_q);
}

/// What the definitions give where no key is visible.
Outputs nothing_visible(const Inputs& in) {
  const AttentionProblem& p = in.problem;
  const at::TensorOptions same = at::TensorOptions().dtype(in.q.scalar_type());
  Outputs out;
  out.out = at::zeros({p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v}, same);
  const double lse = p.op == Op::kSoftmax ? -std::numeric_limits<double>::infinity() : 1.0;
  out.lse = at::full({p.batch, p.num_heads_q, p.seqlen_q}, lse, at::TensorOptions(at::kFloat));
  if (!in.backward()) return out;
  out.dq = at::zeros(in.q.sizes(), same);
  out.dk = at::zeros(in.k.sizes(), same);
  out.dv = at::zeros(in.v.sizes(), same);
  return out;
}

/// int32 [N], or [N + 1] of running sums.
at::Tensor lengths(const Inputs& in, int64_t Sequence::*length, bool running) {
  std::vector<int32_t> values(running ? 1 : 0, 0);
  for (const Sequence& s : in.each_sequence())
    values.push_back(static_cast<int32_t>(s.*length) + (running ? values.back() : 0));
  return at::tensor(at::ArrayRef<int32_t>(values), at::TensorOptions(at::kInt)).to(in.q.device());
}

}  // namespace

std::vector<Sequence> Inputs::each_sequence() const {
  if (kind != Sequences::kWhole) return sequences;
  std::vector<Sequence> all;
  for (int64_t b = 0; b < problem.batch; ++b) all.push_back({b, 0, problem.seqlen_q, 0, problem.seqlen_kv});
  return all;
}

AttentionProblem Inputs::extent() const {
  AttentionProblem p = problem;
  if (kind != Sequences::kPacked) return p;
  p.batch = static_cast<int64_t>(sequences.size());
  p.seqlen_q = p.seqlen_kv = 1;
  for (const Sequence& s : sequences) {
    p.seqlen_q = std::max(p.seqlen_q, s.n_q);
    p.seqlen_kv = std::max(p.seqlen_kv, s.n_kv);
  }
  return p;
}

at::Tensor Inputs::cu_seqlens_q() const { return lengths(*this, &Sequence::n_q, true); }
at::Tensor Inputs::cu_seqlens_kv() const { return lengths(*this, &Sequence::n_kv, true); }
at::Tensor Inputs::seqlens_q() const { return lengths(*this, &Sequence::n_q, false); }
at::Tensor Inputs::seqlens_kv() const { return lengths(*this, &Sequence::n_kv, false); }

Inputs one_sequence(const Inputs& in, const Sequence& s) {
  Inputs out;
  out.problem = in.problem;
  out.problem.batch = 1;
  out.problem.seqlen_q = s.n_q;
  out.problem.seqlen_kv = s.n_kv;
  out.q = rows(in.q, s.batch, s.q_begin, s.n_q);
  out.k = rows(in.k, s.batch, s.kv_begin, s.n_kv);
  out.v = rows(in.v, s.batch, s.kv_begin, s.n_kv);
  out.dout = rows(in.dout, s.batch, s.q_begin, s.n_q);
  out.dlse = rows(in.dlse, s.batch, s.q_begin, s.n_q);
  if (in.key_padding_mask.defined())
    out.key_padding_mask = in.key_padding_mask.narrow(0, s.batch, 1).narrow(1, s.kv_begin, s.n_kv);
  return out;
}

Outputs run_each_sequence(const Inputs& in, const std::function<Outputs(const Inputs&)>& run) {
  if (in.kind == Sequences::kWhole) return run(in);
  Outputs whole = nothing_visible(in);
  for (const Sequence& s : in.sequences) {
    if (s.n_q == 0 || s.n_kv == 0) continue;
    const Outputs part = run(one_sequence(in, s));
    for (const Quantity q : EnumSet<Quantity>::all().members())
      if (part[q].defined()) part_of(whole[q], q, s).copy_(part[q]);
  }
  return whole;
}

}  // namespace attest
