// The plain kernel and the trial of fakes.h.
#include "properties/fakes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "harness/error.h"
#include "properties/support.h"

namespace attest {
namespace {

/// One run of the plain kernel, computing in T.
template <class T>
struct Plain {
  const Inputs& in;
  Defect defect;
  int64_t launch;
  const AttentionProblem& p = in.problem;
  at::Tensor q = widened(in.q), k = widened(in.k), v = widened(in.v);
  at::Tensor dout = in.backward() ? widened(in.dout) : at::Tensor();
  at::Tensor dlse = in.dlse.defined() ? widened(in.dlse) : at::Tensor();
  at::Tensor padded = padded_keys(in);
  Outputs o{};

  static constexpr at::ScalarType kType = c10::CppTypeToScalarType<T>::value;
  static at::Tensor widened(const at::Tensor& t) { return t.to(kType).contiguous(); }
  static T* row(const at::Tensor& t, int64_t b, int64_t h, int64_t i) {
    return t.mutable_data_ptr<T>() + ((b * t.size(1) + h) * t.size(2) + i) * (t.dim() == 4 ? t.size(3) : 1);
  }
  static T dot(const T* a, const T* b, int64_t n) {
    T sum = 0;
    for (int64_t d = 0; d < n; ++d) sum += a[d] * b[d];
    return sum;
  }
  static T sigmoid(T z) { return z >= 0 ? 1 / (1 + std::exp(-z)) : std::exp(z) / (1 + std::exp(z)); }

  bool is(Defect d) const { return defect == d; }
  bool is_padded(int64_t b, int64_t j) const { return padded.defined() && padded.const_data_ptr<bool>()[b * p.seqlen_kv + j]; }
  bool causally_hidden(int64_t i, int64_t j) const {
    const int64_t at = is(Defect::kTopLeftCausal) ? i : p.position(i);
    return p.causal && (p.op == Op::kStickBreaking && !p.attend_current ? j >= at : j > at);
  }
  int64_t tile(int64_t b) const {
    const int64_t capacity = in.k.stride(2) > 0 ? in.k.stride(1) / in.k.stride(2) : p.seqlen_kv;
    const bool other = (is(Defect::kLaunchOrder) && launch % 2 == 1) || (is(Defect::kSplitByBatch) && p.batch > 1) ||
                       (is(Defect::kPositionSeeded) && b % 2 == 1) || (is(Defect::kDecodeTile) && p.seqlen_q == 1) ||
                       (is(Defect::kSplitsByCapacity) && capacity > p.seqlen_kv);
    return other ? 3 : 2;
  }

  struct Key {
    int64_t j;
    T z, weight = 0, beta = 0, others = 1, dz = 0;  // others: 1 − β
    bool counts_nothing = false;
  };

  std::vector<Key> visible(int64_t b, int64_t h, int64_t i) const {
    std::vector<Key> keys;
    for (int64_t j = 0; j < p.seqlen_kv; ++j) {
      if (causally_hidden(i, j)) continue;
      Key key{j, 0};
      if (!is_padded(b, j)) {
        key.z = p.softmax_scale * dot(row(q, b, h, i), row(k, b, kv(h), j), p.head_dim);
      } else if (is(Defect::kPaddingSentinel)) {
        key.z = -1e4F;
      } else if (is(Defect::kPaddingInDenominator)) {
        key.counts_nothing = true;
      } else {
        continue;
      }
      keys.push_back(key);
    }
    return keys;
  }
  int64_t kv(int64_t h) const { return is(Defect::kGqaRepeat) ? h % p.num_heads_kv : p.kv_head(h); }

  /// Σ f over the keys: tiles of absolute positions, ascending, then the tiles' sums, ascending.
  template <class F>
  T sum(const std::vector<Key>& keys, int64_t b, F f) const {
    const int64_t origin = is(Defect::kChunkRelativeTiles) ? p.seqlen_kv % tile(b) : 0;
    T total = 0, part = 0;
    int64_t open = -1;
    for (const Key& key : keys) {
      const int64_t now = (key.j + tile(b) - origin) / tile(b);
      if (now != open) total += part, part = 0, open = now;
      part += f(key);
    }
    return total + part;
  }

  T softmax_weights(std::vector<Key>& keys, int64_t b, int64_t h, int64_t i) const {
    T m = -std::numeric_limits<T>::infinity();
    for (const Key& key : keys) m = std::max(m, key.z);
    if (is(Defect::kPeeksAhead))
      for (int64_t j = 0; j < p.seqlen_kv; ++j)
        if (!is_padded(b, j)) m = std::max<T>(m, p.softmax_scale * dot(row(q, b, h, i), row(k, b, kv(h), j), p.head_dim));
    for (Key& key : keys) key.weight = std::exp(key.z - m);
    const T total = sum(keys, b, [](const Key& key) { return key.weight; });
    for (Key& key : keys) key.weight /= total;
    return keys.empty() ? -std::numeric_limits<T>::infinity() : m + std::log(total);
  }

  T stick_weights(std::vector<Key>& keys) const {
    T rem = 1;
    for (size_t n = keys.size(); n-- > 0;) {
      Key& key = keys[n];
      key.beta = sigmoid(key.z);
      key.others = sigmoid(-key.z);
      key.weight = key.beta * rem;
      rem *= key.others;
    }
    return rem;
  }

  void softmax_dz(std::vector<Key>& keys, int64_t b, T dl, const std::vector<T>& dp) const {
    size_t best = 0;
    for (size_t n = 0; n < keys.size(); ++n)
      if (keys[n].z > keys[best].z) best = n;
    for (size_t n = 0; n < keys.size(); ++n) keys[n].dz = dp[n] - dp[best];
    const T delta = sum(keys, b, [](const Key& key) { return key.weight * key.dz; });
    for (Key& key : keys) key.dz = key.weight * (key.dz - delta + (is(Defect::kDropsDlse) ? 0 : dl));
  }

  void stick_dz(std::vector<Key>& keys, T drem_times_rem, const std::vector<T>& dp) const {
    T far = drem_times_rem;
    for (size_t n = 0; n < keys.size(); ++n) {
      const T a = keys[n].weight * dp[n];
      keys[n].dz = (is(Defect::kOneMinusBeta) ? 1 - keys[n].beta : keys[n].others) * a - keys[n].beta * far;
      far += a;
    }
  }

  void backward_row(std::vector<Key>& keys, int64_t b, int64_t h, int64_t i, T rest) {
    std::vector<T> dp;
    for (const Key& key : keys)
      dp.push_back(key.counts_nothing ? 0 : dot(row(dout, b, h, i), row(v, b, kv(h), key.j), p.head_dim_v));
    const T dl = dlse.defined() ? *row(dlse, b, h, i) : 0;
    p.op == Op::kSoftmax ? softmax_dz(keys, b, dl, dp) : stick_dz(keys, dl * rest, dp);
    if (keys.empty() && is(Defect::kMaskedRowGradients)) *row(o.dq, b, h, i) = std::exp(-rest) * 0;
    for (int64_t d = 0; d < p.head_dim; ++d)
      row(o.dq, b, h, i)[d] +=
          p.softmax_scale * sum(keys, b, [&](const Key& key) { return key.dz * row(k, b, kv(h), key.j)[d]; });
    for (const Key& key : keys) {
      for (int64_t d = 0; d < p.head_dim; ++d) row(o.dk, b, kv(h), key.j)[d] += p.softmax_scale * key.dz * row(q, b, h, i)[d];
      for (int64_t d = 0; d < p.head_dim_v; ++d) row(o.dv, b, kv(h), key.j)[d] += key.weight * row(dout, b, h, i)[d];
    }
    for (int64_t j = 0; is(Defect::kPaddedKeyGradient) && j < p.seqlen_kv; ++j)
      if (is_padded(b, j)) *row(o.dk, b, kv(h), j) += *row(q, b, h, i);
  }

  void one_row(int64_t b, int64_t h, int64_t i) {
    std::vector<Key> keys = visible(b, h, i);
    const T rest = p.op == Op::kSoftmax ? softmax_weights(keys, b, h, i) : stick_weights(keys);
    *row(o.lse, b, h, i) = rest;
    for (int64_t d = 0; d < p.head_dim_v; ++d)
      row(o.out, b, h, i)[d] = sum(keys, b, [&](const Key& key) {
        return key.counts_nothing ? 0 : key.weight * row(v, b, kv(h), key.j)[d];
      });
    if (keys.empty() && is(Defect::kNanOnMaskedRows)) *row(o.out, b, h, i) = std::numeric_limits<T>::quiet_NaN();
    if (in.backward()) backward_row(keys, b, h, i, rest);
  }

  Outputs run() {
    o.out = at::zeros({p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v}, kType);
    o.lse = at::zeros({p.batch, p.num_heads_q, p.seqlen_q}, kType);
    if (in.backward()) o.dq = at::zeros_like(q), o.dk = at::zeros_like(k), o.dv = at::zeros_like(v);
    for (int64_t b = 0; b < p.batch; ++b)
      for (int64_t h = 0; h < p.num_heads_q; ++h)
        for (int64_t i = 0; i < p.seqlen_q; ++i) one_row(b, h, i);
    return o;
  }
};

}  // namespace

KernelVariant plain_kernel(Op op, Defect defect) {
  KernelVariant variant{.name = "plain", .op = op, .contract = {.tolerance = elementwise(1e-2, 1e-2)}};
  variant.domain.sequences = EnumSet<Sequences>::all();
  variant.run = [defect, launches = int64_t{0}](const Inputs& all) mutable {
    return run_each_sequence(all, [&](const Inputs& in) {
      Outputs o = Plain<float>{in, defect, launches++}.run();
      const at::ScalarType type = scalar_type(in.problem.dtype);
      for (Quantity q : EnumSet<Quantity>::all().members())
        if (q != Quantity::kLse && o[q].defined()) o[q] = o[q].to(type);
      return o;
    });
  };
  return variant;
}

Reference plain_reference(const Inputs& in) {
  Inputs wide = in;
  for (at::Tensor* t : {&wide.q, &wide.k, &wide.v, &wide.dout, &wide.dlse})
    if (t->defined()) *t = t->to(at::kDouble);
  Outputs exact = run_each_sequence(wide, [](const Inputs& one) { return Plain<double>{one, Defect::kNone, 0}.run(); });
  exact.lse = exact.lse.to(at::kDouble);  // of sequences, it went through fp32
  Reference r{.oracle = "plain"};
  for (Quantity q : EnumSet<Quantity>::all().members()) {
    if (!exact[q].defined()) continue;
    std::vector<int64_t> sizes = exact[q].sizes().vec();
    sizes.insert(sizes.begin(), enum_size<ErrorSource>());
    r[q] = {exact[q], at::zeros_like(exact[q]), at::zeros(sizes, at::kDouble), at::full_like(exact[q], 1e300)};
  }
  return r;
}

Inputs numbered_inputs(const AttentionProblem& p) {
  const auto numbered = [&](std::vector<int64_t> sizes, uint64_t salt) {
    at::Tensor t = at::empty(sizes, at::kFloat);
    for (int64_t n = 0; n < t.numel(); ++n) {
      const uint64_t mixed = (static_cast<uint64_t>(n) + salt * 1000003U) * 0x9E3779B97F4A7C15U;
      t.mutable_data_ptr<float>()[n] = static_cast<float>(mixed >> 40U) * 0x1p-22F - 2.0F;
    }
    return t;
  };
  const at::ScalarType type = scalar_type(p.dtype);
  Inputs in{.problem = p};
  in.q = numbered({p.batch, p.num_heads_q, p.seqlen_q, p.head_dim}, 1).to(type);
  in.k = numbered({p.batch, p.num_heads_kv, p.seqlen_kv, p.head_dim}, 2).to(type);
  in.v = numbered({p.batch, p.num_heads_kv, p.seqlen_kv, p.head_dim_v}, 3).to(type);
  in.dout = numbered({p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v}, 4).to(type);
  in.dlse = numbered({p.batch, p.num_heads_q, p.seqlen_q}, 5);
  return in;
}

Inputs padded_inputs(const AttentionProblem& p, const std::vector<int64_t>& padded) {
  Inputs in = numbered_inputs(p);
  in.key_padding_mask = at::ones({p.batch, p.seqlen_kv}, at::kBool);
  for (int64_t b = 0; b < p.batch; ++b) {
    const int64_t hidden = padded[static_cast<size_t>(b)];
    in.key_padding_mask[b].narrow(0, p.seqlen_kv - hidden, hidden).fill_(false);
  }
  return in;
}

FakeTrial::FakeTrial(const KernelVariant& variant, Inputs inputs, EnumSet<Quantity> judges)
    : variant_(variant), inputs_(std::move(inputs)), quantities_(judges) {
  if (!inputs_.backward()) quantities_ = quantities_ & kForward;
}

const Outputs& FakeTrial::baseline() {
  const std::string name = std::string(name_of(inputs_.problem.op)) + ".cpu.fixed_order";
  if (!baseline_) baseline_ = Registry<KernelVariant>::instance().find(name)->run(inputs_);
  return *baseline_;
}

const Outputs& FakeTrial::outputs() {
  if (!outputs_) outputs_ = variant_.run(inputs_);
  return *outputs_;
}

const Reference& FakeTrial::reference() {
  if (!reference_) reference_ = plain_reference(inputs_);
  return *reference_;
}

Verdict judged(const std::string& name, const KernelVariant& variant, const Inputs& inputs) {
  const Property* property = Registry<Property>::instance().find(name);
  if (property == nullptr) throw UsageError("no property is called " + name);
  FakeTrial trial(variant, inputs, property->judges);
  return property->check(trial);
}

Status status_of(const std::string& name, const Inputs& inputs) {
  return judged(name, plain_kernel(inputs.problem.op), inputs).status;
}

TEST(Fakes, equal_logits_give_the_mean_and_the_log_of_the_number_of_keys) {
  Inputs in = numbered_inputs({.dtype = Dtype::kFloat32, .seqlen_kv = 3});
  in.q.zero_();
  const Reference r = plain_reference(in);
  EXPECT_NEAR(r[Quantity::kLse].value.item<double>(), std::log(3.0), 1e-15);
  EXPECT_NEAR(r[Quantity::kOut].value.item<double>(), in.v.to(at::kDouble).mean().item<double>(), 1e-15);
}

}  // namespace attest
