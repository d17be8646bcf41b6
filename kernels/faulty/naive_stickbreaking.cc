// The plain stick-breaking attention of naive.h.
#include <cmath>
#include <vector>

#include "kernels/faulty/naive.h"
#include "kernels/faulty/rows.h"

namespace attest::faulty {
namespace {

/// One row: the visible keys in the order the stick is broken, β = σ(z), rest = 1 − β, A, and what is left.
struct Row {
  std::vector<int64_t> keys;
  Floats beta, rest, weight;
  float rem = 1;
};

class StickBreaking {
 public:
  StickBreaking(const Inputs& in, const StickBreakingHooks& hooks)
      : in_(in),
        hooks_(hooks),
        p_(in.problem),
        q_(host(in.q)),
        k_(host(in.k)),
        v_(host(in.v)),
        dout_(host(in.dout)),
        drem_(host(in.dlse)) {
    const auto f32 = at::TensorOptions().dtype(at::kFloat);
    out_ = at::zeros({p_.batch, p_.num_heads_q, p_.seqlen_q, p_.head_dim_v}, f32);
    rem_ = at::ones({p_.batch, p_.num_heads_q, p_.seqlen_q, 1}, f32);
    dq_ = at::zeros(q_.sizes(), at::kDouble);
    dk_ = at::zeros(k_.sizes(), at::kDouble);
    dv_ = at::zeros(v_.sizes(), at::kDouble);
  }

  Outputs run() {
    for (int64_t b = 0; b < p_.batch; ++b)
      for (int64_t h = 0; h < p_.num_heads_q; ++h)
        for (int64_t i = 0; i < p_.seqlen_q; ++i) {
          const Row row = forward(b, h, i);
          if (in_.backward()) backward(b, h, i, row);
        }
    const at::ScalarType type = in_.q.scalar_type();
    Outputs outputs{out_.to(type), rem_.squeeze(3), {}, {}, {}};
    if (in_.backward()) outputs.dq = dq_.to(type), outputs.dk = dk_.to(type), outputs.dv = dv_.to(type);
    return outputs;
  }

 private:
  Row forward(int64_t b, int64_t h, int64_t i) {
    Row row;
    const int64_t g = p_.kv_head(h);
    for (int64_t n = 0; n < p_.seqlen_kv; ++n) {
      const int64_t j = hooks_.oldest_first ? n : p_.seqlen_kv - 1 - n;
      if (!visible_by_definition(in_, b, i, j)) continue;
      const float z = p_.softmax_scale * dot(row_of(q_, b, h, i), row_of(k_, b, g, j), p_.head_dim);
      const float t = std::exp(-std::abs(z)), near = 1.0F / (1.0F + t), far = t / (1.0F + t);
      const float beta = z >= 0 ? near : far;
      row.keys.push_back(j);
      row.beta.push_back(beta);
      row.rest.push_back(hooks_.one_minus_beta ? 1.0F - beta : z >= 0 ? far : near);
      row.weight.push_back(beta * row.rem);
      row.rem *= row.rest.back();
      for (int64_t d = 0; d < p_.head_dim_v; ++d) row_of(out_, b, h, i)[d] += row.weight.back() * row_of(v_, b, g, j)[d];
    }
    *row_of(rem_, b, h, i) = row.rem;
    return row;
  }

  /// dz by DESIGN §2: sums from the far end, nothing nearly equal is subtracted; or, planted, total − nearer.
  Floats gradient_of_logits(const Row& row, const Floats& a, float last) const {
    const size_t n = a.size();
    Floats dz(n);
    float farther = last, total = last, nearer = 0;
    for (float x : a) total += x;
    for (size_t s = n; s-- > 0;) {
      dz[s] = row.rest[s] * a[s] - row.beta[s] * farther;
      farther += a[s];
    }
    for (size_t s = 0; hooks_.one_minus_beta && s < n; ++s) {
      dz[s] = a[s] - row.beta[s] * (total - nearer);
      nearer += a[s];
    }
    return dz;
  }

  void backward(int64_t b, int64_t h, int64_t i, const Row& row) {
    const int64_t g = p_.kv_head(h);
    const float* dout = row_of(dout_, b, h, i);
    const bool given = drem_.defined() && !hooks_.drops_drem;
    const float drem = given ? drem_.data_ptr<float>()[(b * p_.num_heads_q + h) * p_.seqlen_q + i] : 0.0F;
    Floats a;
    for (size_t s = 0; s < row.keys.size(); ++s)
      a.push_back(row.weight[s] * dot(dout, row_of(v_, b, g, row.keys[s]), p_.head_dim_v));
    const Floats dz = gradient_of_logits(row, a, drem * row.rem);
    for (size_t s = 0; s < row.keys.size(); ++s) {
      const int64_t j = row.keys[s];
      for (int64_t d = 0; d < p_.head_dim; ++d) {
        row_of<double>(dq_, b, h, i)[d] += double{p_.softmax_scale} * dz[s] * row_of(k_, b, g, j)[d];
        row_of<double>(dk_, b, g, j)[d] += double{p_.softmax_scale} * dz[s] * row_of(q_, b, h, i)[d];
      }
      for (int64_t d = 0; d < p_.head_dim_v; ++d) row_of<double>(dv_, b, g, j)[d] += double{row.weight[s]} * dout[d];
    }
  }

  const Inputs& in_;
  const StickBreakingHooks& hooks_;
  const AttentionProblem& p_;
  at::Tensor q_, k_, v_, dout_, drem_, out_, rem_, dq_, dk_, dv_;
};

}  // namespace

Outputs naive_stickbreaking(const Inputs& in, const StickBreakingHooks& hooks) {
  return run_each_sequence(in, [&](const Inputs& one) { return StickBreaking(one, hooks).run(); });
}

}  // namespace attest::faulty
