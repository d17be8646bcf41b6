// softmax.cpu.NAME: copy this file to kernels/softmax/, rename, fill the record, rebuild. Nothing else has to be told.
// What it is: softmax attention, forward only, one query at a time in fp32.
// What is unusual: nothing; a kernel of yours takes the place of run_row.
// What it promises: it returns, stays within its contract, and gives the same bits when run again.
#include "harness/variant.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "harness/tensors.h"

namespace attest {
namespace {

/// One query of one head. k is [Skv, D], v is [Skv, Dv], out is [Dv]; keep is [Skv] or null. Returns lse.
float run_row(const AttentionProblem& p, int64_t query, const float* q, const float* k, const float* v, const bool* keep,
              float* out) {
  constexpr float kHidden = -std::numeric_limits<float>::infinity();
  std::vector<float> z(p.seqlen_kv, kHidden);
  float largest = kHidden;
  for (int64_t key = 0; key < p.seqlen_kv; ++key) {
    if ((p.causal && key > p.position(query)) || (keep != nullptr && !keep[key])) continue;
    float dot = 0;
    for (int64_t d = 0; d < p.head_dim; ++d) dot += q[d] * k[key * p.head_dim + d];
    z[key] = p.softmax_scale * dot;
    largest = std::max(largest, z[key]);
  }
  std::fill(out, out + p.head_dim_v, 0.0F);
  if (largest == kHidden) return kHidden;  // no visible key: out 0, lse -inf
  float sum = 0;
  for (int64_t key = 0; key < p.seqlen_kv; ++key) {
    if (z[key] == kHidden) continue;  // what a hidden key holds is never touched
    const float weight = std::exp(z[key] - largest);
    sum += weight;
    for (int64_t d = 0; d < p.head_dim_v; ++d) out[d] += weight * v[key * p.head_dim_v + d];
  }
  for (int64_t d = 0; d < p.head_dim_v; ++d) out[d] /= sum;
  return largest + std::log(sum);
}

Outputs run(const Inputs& in) {
  const AttentionProblem& p = in.problem;
  const auto fp32 = [](const at::Tensor& t) { return t.to(at::kFloat).contiguous(); };
  const at::Tensor q = fp32(in.q), k = fp32(in.k), v = fp32(in.v);
  const at::Tensor keep = in.key_padding_mask.defined() ? in.key_padding_mask.contiguous() : at::Tensor();
  at::Tensor out = fresh({p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v}, at::kFloat, Device::kCpu);
  at::Tensor lse = fresh({p.batch, p.num_heads_q, p.seqlen_q}, at::kFloat, Device::kCpu);
  for (int64_t row = 0; row < lse.numel(); ++row) {
    const int64_t query = row % p.seqlen_q, head = row / p.seqlen_q % p.num_heads_q, b = row / p.seqlen_q / p.num_heads_q;
    const int64_t first_key = (b * p.num_heads_kv + p.kv_head(head)) * p.seqlen_kv;
    const bool* kept = keep.defined() ? keep.const_data_ptr<bool>() + b * p.seqlen_kv : nullptr;
    lse.mutable_data_ptr<float>()[row] =
        run_row(p, query, q.const_data_ptr<float>() + row * p.head_dim, k.const_data_ptr<float>() + first_key * p.head_dim,
                v.const_data_ptr<float>() + first_key * p.head_dim_v, kept,
                out.mutable_data_ptr<float>() + row * p.head_dim_v);
  }
  return {.out = out.to(scalar_type(p.dtype)), .lse = lse};
}

const Register<KernelVariant> registered{{
    .name = "softmax.cpu.NAME",
    .op = Op::kSoftmax,
    .device = Device::kCpu,
    .summary = "plain loops in fp32, forward only",
    .domain = {.ops = {Op::kSoftmax}},
    .produces = {Quantity::kOut, Quantity::kLse},
    .contract = {.tolerance = forward_error(2),
                 .arithmetic = {.accumulate = Arithmetic::Accumulate::kSequentialFp32},
                 .reason = "every sum is sequential and in fp32; probabilities are never rounded"},
    .promises = {"returns", "agrees_with_oracle.forward", "repeat_run.forward"},
    .run = run,
}};

}  // namespace
}  // namespace attest
