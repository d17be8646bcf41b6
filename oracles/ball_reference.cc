#include "oracles/ball_reference.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "harness/error.h"
#include "oracles/ball_rows.h"

namespace attest {
namespace {

constexpr int64_t kBlockRows = 64;
constexpr int64_t kBlockBalls = int64_t{1} << 18;  // of one of the two matrices [rows, keys] of a block

BallMatrix product(const BallMatrix& a, const arb_mat_struct* b, slong bits) {
  BallMatrix c(a.rows(), arb_mat_ncols(b));
  arb_mat_mul(c.get(), a.get(), b, bits);
  return c;
}

/// Leaves `matrix` empty of values.
BallMatrix transposed(BallMatrix& matrix) {
  BallMatrix t(matrix.columns(), matrix.rows());
  for (int64_t i = 0; i < matrix.rows(); ++i)
    for (int64_t j = 0; j < matrix.columns(); ++j) arb_swap(t.at(j, i), matrix.at(i, j));
  return t;
}

/// The first rows or columns of a matrix, in place.
class Window {
 public:
  Window(const BallMatrix& matrix, int64_t rows, int64_t columns) {
    arb_mat_window_init(window_, const_cast<arb_mat_struct*>(matrix.get()), 0, 0, rows, columns);
  }
  ~Window() { arb_mat_window_clear(window_); }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  const arb_mat_struct* get() const { return window_; }

 private:
  arb_mat_t window_;
};

/// The visible keys of a query are the first `counts[query]` of `keys`: whatever the mask, a later query sees no less.
struct Visible {
  std::vector<int64_t> keys;    // ascending; those that a query sees
  std::vector<int64_t> counts;  // [n_q], ascending
};

Visible visible_of(const GroupProblem& p) {
  Visible visible;
  for (int64_t j = 0; j < p.n_kv; ++j)
    if (p.keep == nullptr || p.keep[j] != 0) visible.keys.push_back(j);
  for (int64_t i = 0; i < p.n_q; ++i)
    visible.counts.push_back(std::ranges::lower_bound(visible.keys, p.keys_in_reach(i)) - visible.keys.begin());
  visible.keys.resize(visible.counts.empty() ? 0 : visible.counts.back());
  return visible;
}

void put_row(BallMatrix& to, int64_t row, const double* from) {
  for (int64_t d = 0; d < to.columns(); ++d) {
    if (!std::isfinite(from[d])) throw UsageError("a visible input is NaN or infinite: no reference exists");
    arb_set_d(to.at(row, d), from[d]);
  }
}

BallMatrix rows_of(const double* from, int64_t first, int64_t count, int64_t columns) {
  BallMatrix matrix(count, columns);
  for (int64_t i = 0; i < count; ++i) put_row(matrix, i, from + (first + i) * columns);
  return matrix;
}

class Evaluation {
 public:
  Evaluation(const GroupProblem& problem, int bits);
  BallReference run();

 private:
  struct Block {
    int64_t first, rows, keys;  // first: of [group·n_q]; keys: what the last row sees
    BallMatrix q, dout, weights, dz;
  };
  BallMatrix gathered(const double* from, int64_t columns) const;
  void no_key(int64_t row);
  void evaluate(int64_t first, int64_t first_query, int64_t rows);
  void work_rows(Block& block, int64_t first_query);
  void put_rows(BallMatrix& to, BallMatrix from, int64_t first);
  void add_to_keys(BallMatrix& to, BallMatrix& weights, const BallMatrix& rows);
  void put_keys(Quantity quantity, BallMatrix& from);
  void scale_all(BallMatrix& matrix);

  const GroupProblem& p_;
  const slong bits_;
  const Visible visible_;
  Ball scale_;
  BallMatrix k_, v_, k_transposed_, v_transposed_;  // of the visible keys
  BallMatrix dk_, dv_;                              // of the visible keys; dk without the scale
  BallReference result_;
};

Evaluation::Evaluation(const GroupProblem& problem, int bits)
    : p_(problem), bits_(bits), visible_(visible_of(problem)), scale_(problem.softmax_scale),
      k_(gathered(p_.k, p_.head_dim)), v_(gathered(p_.v, p_.head_dim_v)),
      k_transposed_(p_.head_dim, k_.rows()), v_transposed_(p_.head_dim_v, v_.rows()) {
  const int64_t rows = p_.group * p_.n_q;
  result_[Quantity::kOut] = BallMatrix(rows, p_.head_dim_v);
  result_[Quantity::kLse] = BallMatrix(rows, 1);
  arb_mat_transpose(k_transposed_.get(), k_.get());
  if (!p_.backward()) return;
  arb_mat_transpose(v_transposed_.get(), v_.get());
  dk_ = BallMatrix(k_.rows(), p_.head_dim);
  dv_ = BallMatrix(v_.rows(), p_.head_dim_v);
  result_[Quantity::kDq] = BallMatrix(rows, p_.head_dim);
  result_[Quantity::kDk] = BallMatrix(p_.n_kv, p_.head_dim);
  result_[Quantity::kDv] = BallMatrix(p_.n_kv, p_.head_dim_v);
}

BallMatrix Evaluation::gathered(const double* from, int64_t columns) const {
  BallMatrix matrix(static_cast<int64_t>(visible_.keys.size()), columns);
  for (int64_t n = 0; n < matrix.rows(); ++n) put_row(matrix, n, from + visible_.keys[n] * columns);
  return matrix;
}

BallReference Evaluation::run() {
  const int64_t fits = std::max<int64_t>(1, kBlockBalls / std::max<int64_t>(1, k_.rows()));
  const int64_t height = std::min(kBlockRows, fits);
  const int64_t first = std::ranges::lower_bound(visible_.counts, 1) - visible_.counts.begin();  // query with a key
  for (int64_t head = 0; head < p_.group; ++head) {
    for (int64_t i = 0; i < first; ++i) no_key(head * p_.n_q + i);
    for (int64_t i = first; i < p_.n_q; i += height) evaluate(head * p_.n_q + i, i, std::min(height, p_.n_q - i));
  }
  if (p_.backward()) {
    scale_all(dk_);
    put_keys(Quantity::kDk, dk_);
    put_keys(Quantity::kDv, dv_);
  }
  return std::move(result_);
}

void Evaluation::no_key(int64_t row) {
  arb_ptr lse = result_[Quantity::kLse].at(row, 0);
  p_.op == Op::kSoftmax ? arb_neg_inf(lse) : arb_one(lse);
}

void Evaluation::evaluate(int64_t first, int64_t first_query, int64_t rows) {
  const int64_t keys = visible_.counts[first_query + rows - 1];
  Block block{first, rows, keys, rows_of(p_.q, first, rows, p_.head_dim), {}, {}, {}};
  block.weights = product(block.q, Window(k_transposed_, p_.head_dim, keys).get(), bits_);
  if (p_.backward()) {
    block.dout = rows_of(p_.dout, first, rows, p_.head_dim_v);
    block.dz = product(block.dout, Window(v_transposed_, p_.head_dim_v, keys).get(), bits_);
  }
  work_rows(block, first_query);
  put_rows(result_[Quantity::kOut], product(block.weights, Window(v_, keys, p_.head_dim_v).get(), bits_), first);
  if (!p_.backward()) return;
  BallMatrix dq = product(block.dz, Window(k_, keys, p_.head_dim).get(), bits_);
  scale_all(dq);
  put_rows(result_[Quantity::kDq], std::move(dq), first);
  add_to_keys(dk_, block.dz, block.q);
  add_to_keys(dv_, block.weights, block.dout);
}

/// q·k and dout·v become weights and dz; 0 for keys that a row does not see.
void Evaluation::work_rows(Block& block, int64_t first_query) {
  const auto work = p_.op == Op::kSoftmax ? softmax_row : stickbreaking_row;
  for (int64_t r = 0; r < block.rows; ++r) {
    const int64_t keys = visible_.counts[first_query + r];
    const double dlse = p_.dlse == nullptr || !p_.backward() ? 0 : p_.dlse[block.first + r];
    if (!std::isfinite(dlse)) throw UsageError("dlse or drem is NaN or infinite in a row with visible keys");
    const Ball dlse_ball(dlse);
    work({block.weights.at(r, 0), p_.backward() ? block.dz.at(r, 0) : nullptr, keys, scale_, dlse_ball, bits_},
         result_[Quantity::kLse].at(block.first + r, 0));
    for (int64_t j = keys; j < block.keys; ++j) {
      arb_zero(block.weights.at(r, j));
      if (p_.backward()) arb_zero(block.dz.at(r, j));
    }
  }
}

void Evaluation::put_rows(BallMatrix& to, BallMatrix from, int64_t first) {
  for (int64_t i = 0; i < from.rows(); ++i)
    for (int64_t d = 0; d < from.columns(); ++d) arb_swap(to.at(first + i, d), from.at(i, d));
}

/// to += weightsᵀ · rows, for the keys of the block.
void Evaluation::add_to_keys(BallMatrix& to, BallMatrix& weights, const BallMatrix& rows) {
  const BallMatrix sum = product(transposed(weights), rows.get(), bits_);
  for (int64_t j = 0; j < sum.rows(); ++j)
    for (int64_t d = 0; d < sum.columns(); ++d) arb_add(to.at(j, d), to.at(j, d), sum.at(j, d), bits_);
}

void Evaluation::put_keys(Quantity quantity, BallMatrix& from) {
  for (int64_t n = 0; n < from.rows(); ++n)
    for (int64_t d = 0; d < from.columns(); ++d) arb_swap(result_[quantity].at(visible_.keys[n], d), from.at(n, d));
}

void Evaluation::scale_all(BallMatrix& matrix) {
  arb_mat_scalar_mul_arb(matrix.get(), matrix.get(), scale_, bits_);
}

}  // namespace

BallReference ball_reference(const GroupProblem& problem, int bits) { return Evaluation(problem, bits).run(); }

}  // namespace attest
