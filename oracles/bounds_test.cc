// The error terms against a straightforward fp32 evaluation: the bound holds, and it is not loose.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "harness/mask.h"
#include "oracles/test_inputs.h"

namespace attest {
namespace {

std::vector<float> floats(const at::Tensor& x) {
  const at::Tensor copy = x.to(at::kFloat).contiguous();
  return {copy.const_data_ptr<float>(), copy.const_data_ptr<float>() + copy.numel()};
}

/// kTextbook: softmax subtracts δ = Σ P dP from dP; stick-breaking takes 1 − β for σ(−z). Both cancel at saturation.
enum class Form : uint8_t { kShifted, kTextbook };

/// One batch element, one head; sums in sequence, in fp32; nothing refined but what the definitions say.
class Naive {
 public:
  Naive(const Inputs& in, Form form)
      : p_(in.problem), textbook_(form == Form::kTextbook),
        q_(floats(in.q)), k_(floats(in.k)), v_(floats(in.v)), dout_(floats(in.dout)), dlse_(floats(in.dlse)),
        out_(dout_.size()), lse_(dlse_.size()), dq_(q_.size()), dk_(k_.size()), dv_(v_.size()) {
    if (in.key_padding_mask.defined()) keep_ = floats(in.key_padding_mask);
    for (int64_t i = 0; i < p_.seqlen_q; ++i) row(i);
  }

  Outputs outputs(const Inputs& in) const {
    const auto as = [](const std::vector<float>& x, const at::Tensor& like) {
      return at::tensor(at::ArrayRef<float>(x), at::TensorOptions(at::kFloat)).view(like.sizes()).to(like.scalar_type());
    };
    return {as(out_, in.dout), as(lse_, in.dlse), as(dq_, in.q), as(dk_, in.k), as(dv_, in.v)};
  }

 private:
  float dot(const std::vector<float>& a, int64_t i, const std::vector<float>& b, int64_t j, int64_t n) const {
    float sum = 0;
    for (int64_t d = 0; d < n; ++d) sum += a[i * n + d] * b[j * n + d];
    return sum;
  }
  void see(int64_t i) {
    std::vector<uint8_t> keep(keep_.begin(), keep_.end());
    const Mask mask{p_, keep.empty() ? nullptr : keep.data()};
    keys_.clear();
    for (int64_t j = 0; j < p_.seqlen_kv; ++j)
      if (mask.allows(0, i, j)) keys_.push_back(j);
    z_.resize(keys_.size());
    dp_.resize(keys_.size());
    for (size_t n = 0; n < keys_.size(); ++n) {
      z_[n] = p_.softmax_scale * dot(q_, i, k_, keys_[n], p_.head_dim);
      dp_[n] = dot(dout_, i, v_, keys_[n], p_.head_dim_v);
    }
    weight_.assign(keys_.size(), 0);
    dz_.assign(keys_.size(), 0);
  }
  void row(int64_t i) {
    see(i);
    if (keys_.empty()) return void(lse_[i] = p_.op == Op::kSoftmax ? -INFINITY : 1);
    p_.op == Op::kSoftmax ? softmax(i) : stickbreaking(i);
    const int64_t dim = p_.head_dim, dim_v = p_.head_dim_v;
    for (size_t n = 0; n < keys_.size(); ++n) {
      for (int64_t d = 0; d < dim_v; ++d) out_[i * dim_v + d] += weight_[n] * v_[keys_[n] * dim_v + d];
      for (int64_t d = 0; d < dim_v; ++d) dv_[keys_[n] * dim_v + d] += weight_[n] * dout_[i * dim_v + d];
      for (int64_t d = 0; d < dim; ++d) dq_[i * dim + d] += p_.softmax_scale * dz_[n] * k_[keys_[n] * dim + d];
      for (int64_t d = 0; d < dim; ++d) dk_[keys_[n] * dim + d] += p_.softmax_scale * dz_[n] * q_[i * dim + d];
    }
  }
  void softmax(int64_t i) {
    const size_t top = std::max_element(z_.begin(), z_.end()) - z_.begin();
    float sum = 0, delta = 0;
    for (size_t n = 0; n < z_.size(); ++n) sum += weight_[n] = std::exp(z_[n] - z_[top]);
    lse_[i] = z_[top] + std::log(sum);
    for (float& w : weight_) w /= sum;
    const float shift = textbook_ ? 0 : dp_[top];
    for (size_t n = 0; n < z_.size(); ++n) delta += weight_[n] * (dp_[n] - shift);
    for (size_t n = 0; n < z_.size(); ++n) dz_[n] = weight_[n] * (dp_[n] - shift - delta + dlse_[i]);
  }
  float beta(float z) const { return 1 / (1 + std::exp(-z)); }
  float rest(float z) const { return textbook_ ? 1 - beta(z) : beta(-z); }
  void stickbreaking(int64_t i) {
    float left = 1;
    for (size_t n = z_.size(); n-- > 0; left *= rest(z_[n])) weight_[n] = left * beta(z_[n]);
    lse_[i] = left;
    float far = dlse_[i] * left;
    for (size_t n = 0; n < z_.size(); ++n) {
      const float a = weight_[n] * dp_[n];
      dz_[n] = rest(z_[n]) * a - beta(z_[n]) * far;
      far += a;
    }
  }

  const AttentionProblem& p_;
  bool textbook_;
  std::vector<float> q_, k_, v_, dout_, dlse_, keep_, out_, lse_, dq_, dk_, dv_;
  std::vector<int64_t> keys_;
  std::vector<float> z_, dp_, weight_, dz_;
};

/// The largest error over bound (c = 1) of each quantity.
std::array<double, enum_size<Quantity>()> headrooms(const Inputs& in, Form form = Form::kShifted) {
  const Reference reference = reference_of(in);
  const Outputs actual = Naive(in, form).outputs(in);
  const ErrorUnits units = error_units({}, in.problem);
  std::array<double, enum_size<Quantity>()> worst{};
  for (size_t n = 0; n < worst.size(); ++n) {
    const at::Tensor& a = actual[static_cast<Quantity>(n)];
    const at::Tensor bound = forward_error_bound(reference.quantities[n], units, a.scalar_type());
    const at::Tensor error = (a.to(at::kDouble) - reference.quantities[n].value).abs() - reference.quantities[n].radius;
    worst[n] = at::nan_to_num(error, 0).div(bound).max().item<double>();  // −∞ − (−∞): equal
  }
  return worst;
}

AttentionProblem problem(Op op, Dtype dtype, int64_t seqlen_q, int64_t seqlen_kv, bool causal) {
  return {.op = op, .dtype = dtype, .seqlen_q = seqlen_q, .seqlen_kv = seqlen_kv, .head_dim = 16, .head_dim_v = 8,
          .causal = causal || op == Op::kStickBreaking, .attend_current = causal && op == Op::kStickBreaking,
          .softmax_scale = 0.25F};
}

TEST(ErrorBound, a_correct_fp32_evaluation_stays_within_it_at_every_saturation) {
  uint64_t seed = 1;
  for (const Op op : {Op::kSoftmax, Op::kStickBreaking})
    for (const Dtype dtype : {Dtype::kFloat16, Dtype::kBFloat16, Dtype::kFloat32})
      for (const double gain : {0.0, 1e-6, 1.0, 8.0, 60.0})
        for (const bool causal : {false, true}) {
          Inputs in = normal_inputs(problem(op, dtype, 7, causal ? 5 : 19, causal), ++seed, gain);
          if (causal) hide_some_keys(in);
          const auto worst = headrooms(in);
          for (size_t n = 0; n < worst.size(); ++n)
            EXPECT_LE(worst[n], 1) << in.problem.softmax_scale << name_of(op) << ' ' << name_of(dtype) << " gain " << gain << ' '
                                   << name_of(static_cast<Quantity>(n));
        }
}

TEST(ErrorBound, gradients_in_the_textbook_form_exceed_it_at_saturation) {
  for (const Op op : {Op::kSoftmax, Op::kStickBreaking}) {
    Inputs in = normal_inputs(problem(op, Dtype::kFloat32, 7, 19, true), 3, 60);
    in.dlse.zero_();
    const auto worst = headrooms(in, Form::kTextbook);
    for (const Quantity quantity : {Quantity::kDq, Quantity::kDk})
      EXPECT_GE(worst[static_cast<size_t>(quantity)], 100) << name_of(op) << ' ' << name_of(quantity);
  }
}

TEST(ErrorBound, subnormal_values_stay_within_it) {
  for (const Op op : {Op::kSoftmax, Op::kStickBreaking}) {
    Inputs in = normal_inputs(problem(op, Dtype::kFloat32, 6, 40, true), 5);
    in.v.mul_(0x1p-140);
    in.dout.mul_(0x1p-10);
    for (const double worst : headrooms(in)) EXPECT_LE(worst, 1);
    in.q.mul_(0x1p-130);
    in.k.mul_(0x1p-100);
    for (const double worst : headrooms(in)) EXPECT_LE(worst, 1);
  }
}

/// The worst headrooms over normal inputs of several sizes and seeds.
std::array<double, enum_size<Quantity>()> worst_headrooms(Op op, Dtype dtype) {
  std::array<double, enum_size<Quantity>()> worst{};
  for (const auto& [seqlen, dim] : {std::pair<int64_t, int64_t>{2, 2}, {4, 4}, {24, 16}})
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      AttentionProblem p = problem(op, dtype, seqlen, seqlen, true);
      p.head_dim = p.head_dim_v = dim;
      const auto here = headrooms(normal_inputs(p, seed));
      for (size_t n = 0; n < worst.size(); ++n) worst[n] = std::max(worst[n], here[n]);
    }
  return worst;
}

TEST(ErrorBound, on_normal_inputs_the_worst_error_exceeds_a_twentieth_of_it) {
  for (const Op op : {Op::kSoftmax, Op::kStickBreaking})
    for (const Dtype dtype : {Dtype::kFloat16, Dtype::kBFloat16, Dtype::kFloat32}) {
      const auto worst = worst_headrooms(op, dtype);
      for (size_t n = 0; n < worst.size(); ++n) {
        EXPECT_GE(worst[n], 1.0 / 20) << name_of(op) << ' ' << name_of(dtype) << ' ' << name_of(static_cast<Quantity>(n));
        EXPECT_LE(worst[n], 1) << name_of(op) << ' ' << name_of(dtype) << ' ' << name_of(static_cast<Quantity>(n));
      }
    }
}

TEST(ErrorBound, with_growing_sums_the_worst_error_stays_above_a_hundredth_of_it) {
  for (const Op op : {Op::kSoftmax, Op::kStickBreaking}) {
    const auto worst = headrooms(normal_inputs(problem(op, Dtype::kFloat32, 24, 24, true), 11));
    for (size_t n = 0; n < worst.size(); ++n)
      EXPECT_GE(worst[n], 1.0 / 100) << name_of(op) << ' ' << name_of(static_cast<Quantity>(n));
  }
}

TEST(ErrorBound, an_error_of_one_percent_in_fp32_exceeds_it_a_hundredfold) {
  for (const Op op : {Op::kSoftmax, Op::kStickBreaking}) {
    const Inputs in = normal_inputs(problem(op, Dtype::kFloat32, 24, 24, true), 12);
    const Reference r = reference_of(in);
    const at::Tensor bound = forward_error_bound(r[Quantity::kOut], error_units({}, in.problem), at::kFloat);
    const at::Tensor ratio = r[Quantity::kOut].value.abs().mul(0.01).div(bound);
    EXPECT_GE(ratio.median().item<double>(), 100);
  }
}

}  // namespace
}  // namespace attest
