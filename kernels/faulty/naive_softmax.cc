// The plain softmax attention of naive.h.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/faulty/naive.h"
#include "kernels/faulty/rows.h"

namespace attest::faulty {
namespace {

class Softmax {
 public:
  Softmax(const Inputs& in, const SoftmaxHooks& hooks)
      : in_(in),
        hooks_(hooks),
        p_(in.problem),
        q_(host(in.q)),
        k_(host(in.k)),
        v_(host(in.v)),
        dout_(host(in.dout)),
        dlse_(host(in.dlse)) {
    const auto f32 = at::TensorOptions().dtype(at::kFloat);
    out_ = at::zeros({p_.batch, p_.num_heads_q, p_.seqlen_q, p_.head_dim_v}, f32);
    lse_ = at::full({p_.batch, p_.num_heads_q, p_.seqlen_q, 1}, -INFINITY, f32);
    dq_ = at::zeros(q_.sizes(), at::kDouble);
    dk_ = at::zeros(k_.sizes(), at::kDouble);
    dv_ = at::zeros(v_.sizes(), at::kDouble);
  }

  Outputs run() {
    for (int64_t b = 0; b < p_.batch; ++b)
      for (int64_t h = 0; h < p_.num_heads_q; ++h)
        for (int64_t i = 0; i < p_.seqlen_q; ++i) row(b, h, i);
    const at::ScalarType type = in_.q.scalar_type();
    Outputs outputs{out_.to(type), lse_.squeeze(3), {}, {}, {}};
    if (in_.backward()) outputs.dq = dq_.to(type), outputs.dk = dk_.to(type), outputs.dv = dv_.to(type);
    return outputs;
  }

 private:
  struct Sums {
    float normaliser = 0;
    Floats out;
  };

  void row(int64_t b, int64_t h, int64_t i) {
    const int64_t n = p_.seqlen_kv, g = hooks_.kv_head(p_, h);
    Floats z(n);
    float maximum = hooks_.phantom_keys(in_) > 0 ? 0.0F : -INFINITY;
    for (int64_t j = 0; j < n; ++j) {
      const bool seen = hooks_.visible(in_, b, i, j);
      const bool scored = seen || hooks_.maximum_over_all_keys;
      const float score =
          scored ? p_.softmax_scale * dot(row_of(q_, b, h, i), row_of(k_, b, g, j), p_.head_dim) : hooks_.hidden_score;
      z[j] = seen ? score : hooks_.hidden_score;
      maximum = std::max(maximum, score);
    }
    const bool empty = *std::max_element(z.begin(), z.end()) == -INFINITY && hooks_.phantom_keys(in_) == 0;
    if (empty && hooks_.guards_empty_rows && hooks_.guards_empty_rows_in_backward) return;
    Sums sums = sum(b, g, z, maximum);
    if (const int64_t phantoms = hooks_.phantom_keys(in_); phantoms > 0)
      sums.normaliser += static_cast<float>(phantoms) * std::exp(-maximum);
    if (!(empty && hooks_.guards_empty_rows)) {
      for (int64_t d = 0; d < p_.head_dim_v; ++d) row_of(out_, b, h, i)[d] = sums.out[d] / sums.normaliser;
      *row_of(lse_, b, h, i) = maximum + std::log(sums.normaliser);
    }
    if (in_.backward()) backward(b, h, g, i, z, maximum, sums.normaliser);
  }

  Sums sum(int64_t b, int64_t g, const Floats& z, float maximum) {
    const int64_t n = p_.seqlen_kv, splits = std::min(n, hooks_.splits(in_));
    Sums total{0, Floats(p_.head_dim_v, 0.0F)};
    for (int64_t s = 0; s < splits; ++s) {
      Sums part{0, Floats(p_.head_dim_v, 0.0F)};
      for (int64_t at = s * n / splits; at < (s + 1) * n / splits; ++at) {
        const int64_t j = hooks_.visited(in_, b, at);
        if (z[j] == -INFINITY && hooks_.guards_empty_rows) continue;
        const float weight = std::exp(z[j] - maximum);
        part.normaliser += weight;
        for (int64_t d = 0; d < p_.head_dim_v; ++d) part.out[d] += weight * row_of(v_, b, g, j)[d];
      }
      total.normaliser += part.normaliser;
      for (int64_t d = 0; d < p_.head_dim_v; ++d) total.out[d] += part.out[d];
    }
    return total;
  }

  /// δ relative to the arg-max key, which cancels nothing at saturation.
  void backward(int64_t b, int64_t h, int64_t g, int64_t i, const Floats& z, float maximum, float normaliser) {
    const int64_t n = p_.seqlen_kv, top = std::max_element(z.begin(), z.end()) - z.begin();
    const float* dout = row_of(dout_, b, h, i);
    Floats probability(n), shifted(n);
    const float top_dp = dot(dout, row_of(v_, b, g, top), p_.head_dim_v);
    float delta = 0;
    for (int64_t j = 0; j < n; ++j) {
      if (z[j] == -INFINITY && hooks_.guards_empty_rows_in_backward) continue;
      probability[j] = std::exp(z[j] - maximum) / normaliser;
      shifted[j] = dot(dout, row_of(v_, b, g, j), p_.head_dim_v) - top_dp;
      delta += probability[j] * shifted[j];
    }
    const float dlse = dlse_.defined() ? dlse_.data_ptr<float>()[(b * p_.num_heads_q + h) * p_.seqlen_q + i] : 0.0F;
    for (int64_t j = 0; j < n; ++j) {
      if (z[j] == -INFINITY && hooks_.guards_empty_rows_in_backward) continue;
      const float dz = p_.softmax_scale * (probability[j] * (shifted[j] - delta + dlse));
      for (int64_t d = 0; d < p_.head_dim; ++d) {
        row_of<double>(dq_, b, h, i)[d] += double{dz} * row_of(k_, b, g, j)[d];
        row_of<double>(dk_, b, g, j)[d] += double{dz} * row_of(q_, b, h, i)[d];
      }
      for (int64_t d = 0; d < p_.head_dim_v; ++d) row_of<double>(dv_, b, g, j)[d] += double{probability[j]} * dout[d];
    }
  }

  const Inputs& in_;
  const SoftmaxHooks& hooks_;
  const AttentionProblem& p_;
  at::Tensor q_, k_, v_, dout_, dlse_, out_, lse_, dq_, dk_, dv_;
};

}  // namespace

bool visible_by_definition(const Inputs& in, int64_t b, int64_t i, int64_t j) {
  const AttentionProblem& p = in.problem;
  const at::Tensor& keep = in.key_padding_mask;
  if (keep.defined() && !keep.const_data_ptr<bool>()[b * keep.stride(0) + j * keep.stride(1)]) return false;
  const int64_t position = p.position(i);
  return !p.causal || (p.op == Op::kStickBreaking && !p.attend_current ? j < position : j <= position);
}

Outputs naive_softmax(const Inputs& in, const SoftmaxHooks& hooks) {
  return run_each_sequence(in, [&](const Inputs& one) { return Softmax(one, hooks).run(); });
}

KernelVariant faulty_variant(const std::string& name, Op op, const std::string& summary, const std::string& caught_by) {
  KernelVariant variant;
  variant.name = name;
  variant.op = op;
  variant.summary = summary;
  variant.faulty_caught_by = caught_by;
  variant.contract = {forward_error(2), {}, "plain loops in fp32: sequential sums, those of gradients in fp64, operands kept in fp32", {}};
  variant.promises = {"returns", "gradients_at_saturation", "hidden_keys_have_zero_gradient"};
  for (const char* law : {"agrees_with_oracle", "repeat_run", "batch_size", "batch_position", "batch_chunking", "chunked_prefill",
                          "prefill_decode", "kv_cache", "padding_inert", "padded_trimmed", "causal_prefix", "fully_masked_rows",
                          "packed_equals_separate", "lengths_equal_trimmed", "sequences_apart"})
    for (const char* part : {".forward", ".gradients"}) variant.promises.insert(std::string(law) + part);
  return variant;
}

}  // namespace attest::faulty
