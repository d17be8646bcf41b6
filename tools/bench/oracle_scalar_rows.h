// Forward and backward of single query rows in a scalar type T, from the formulas of oracles/README.md.
#pragma once

#include <chrono>
#include <vector>

#include "oracles/group_problem.h"

namespace attest::bench {

template <class T>
class ScalarRows {
 public:
  explicit ScalarRows(const GroupProblem& p)
      : p_(p), scale_(p.softmax_scale), q_(p.q, p.q + p.rows() * p.head_dim), k_(p.k, p.k + p.n_kv * p.head_dim),
        v_(p.v, p.v + p.n_kv * p.head_dim_v), dout_(p.dout, p.dout + p.rows() * p.head_dim_v), dq_(q_.size(), T(0)),
        dk_(k_.size(), T(0)), dv_(v_.size(), T(0)), out_(dout_.size(), T(0)), weight_(p.n_kv), dz_(p.n_kv), beta_(p.n_kv),
        rest_(p.n_kv) {}

  /// Seconds for these rows of the first head.
  double seconds(const std::vector<int64_t>& rows) {
    const auto begin = std::chrono::steady_clock::now();
    for (const int64_t i : rows) row(i);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

 private:
  void row(int64_t i) {
    const int64_t keys = p_.keys_in_reach(i);
    for (int64_t j = 0; j < keys; ++j) {
      weight_[j] = dot(&q_[i * p_.head_dim], &k_[j * p_.head_dim], p_.head_dim) * scale_;
      dz_[j] = dot(&dout_[i * p_.head_dim_v], &v_[j * p_.head_dim_v], p_.head_dim_v);
    }
    if (keys > 0) p_.op == Op::kSoftmax ? softmax(keys) : stickbreaking(keys);
    for (int64_t j = 0; j < keys; ++j) {
      add(&out_[i * p_.head_dim_v], weight_[j], &v_[j * p_.head_dim_v], p_.head_dim_v);
      add(&dv_[j * p_.head_dim_v], weight_[j], &dout_[i * p_.head_dim_v], p_.head_dim_v);
      dz_[j] *= scale_;
      add(&dq_[i * p_.head_dim], dz_[j], &k_[j * p_.head_dim], p_.head_dim);
      add(&dk_[j * p_.head_dim], dz_[j], &q_[i * p_.head_dim], p_.head_dim);
    }
  }

  void softmax(int64_t keys) {
    int64_t top = 0;
    for (int64_t j = 1; j < keys; ++j)
      if (weight_[j] > weight_[top]) top = j;
    const T max = weight_[top], base = dz_[top];
    T sum(0), mean(0);
    for (int64_t j = 0; j < keys; ++j) sum += weight_[j] = exp(T(weight_[j] - max));
    for (int64_t j = 0; j < keys; ++j) {
      weight_[j] /= sum;
      dz_[j] -= base;
      mean += weight_[j] * dz_[j];
    }
    for (int64_t j = 0; j < keys; ++j) dz_[j] = weight_[j] * (dz_[j] - mean);
  }

  void stickbreaking(int64_t keys) {
    T left(1), far(0);
    for (int64_t j = keys; j-- > 0;) {
      const bool positive = weight_[j] > 0;
      const T e = exp(T(positive ? T(-weight_[j]) : weight_[j])), large = 1 / (1 + e), small = e * large;
      beta_[j] = positive ? large : small;
      rest_[j] = positive ? small : large;
      weight_[j] = beta_[j] * left;
      left *= rest_[j];
    }
    for (int64_t j = 0; j < keys; ++j) {
      const T a = weight_[j] * dz_[j];
      dz_[j] = rest_[j] * a - beta_[j] * far;
      far += a;
    }
  }

  static T dot(const T* a, const T* b, int64_t n) {
    T sum(0);
    for (int64_t d = 0; d < n; ++d) sum += a[d] * b[d];
    return sum;
  }
  static void add(T* to, const T& factor, const T* x, int64_t n) {
    for (int64_t d = 0; d < n; ++d) to[d] += factor * x[d];
  }

  const GroupProblem& p_;
  const T scale_;
  std::vector<T> q_, k_, v_, dout_, dq_, dk_, dv_, out_, weight_, dz_, beta_, rest_;
};

}  // namespace attest::bench
