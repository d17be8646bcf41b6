#include "oracles/ball_rows.h"

namespace attest {
namespace {

int64_t largest(const BallRow& row) {
  int64_t best = 0;
  for (int64_t j = 1; j < row.keys; ++j)
    if (arf_cmp(arb_midref(row.logits + j), arb_midref(row.logits + best)) > 0) best = j;
  return best;
}

void scale_logits(const BallRow& row) {
  for (int64_t j = 0; j < row.keys; ++j) arb_mul(row.logits + j, row.logits + j, row.scale, row.bits);
}

/// P_j = e^{z_j − m} / Σ e^{z_l − m}, lse = m + log Σ, with m a number near the largest logit, exact.
void softmax_forward(const BallRow& row, int64_t top, arb_ptr lse) {
  Ball m, sum;
  arb_get_mid_arb(m, row.logits + top);
  for (int64_t j = 0; j < row.keys; ++j) {
    arb_ptr z = row.logits + j;
    arb_sub(z, z, m, row.bits);
    arb_exp(z, z, row.bits);
    arb_add(sum, sum, z, row.bits);
  }
  arb_log(lse, sum, row.bits);
  arb_add(lse, lse, m, row.bits);
  arb_inv(sum, sum, row.bits);
  for (int64_t j = 0; j < row.keys; ++j) arb_mul(row.logits + j, row.logits + j, sum, row.bits);
}

/// d_j = dP_j − dP_*, dz_j = P_j (d_j + (dlse − Σ P d)); d_* is exactly 0.
void softmax_backward(const BallRow& row, int64_t top) {
  Ball base, shift;
  arb_swap(base, row.dp + top);  // leaves 0
  for (int64_t j = 0; j < row.keys; ++j)
    if (j != top) arb_sub(row.dp + j, row.dp + j, base, row.bits);
  arb_dot(shift, nullptr, 0, row.logits, 1, row.dp, 1, row.keys, row.bits);
  arb_sub(shift, row.dlse, shift, row.bits);
  for (int64_t j = 0; j < row.keys; ++j) {
    arb_add(row.dp + j, row.dp + j, shift, row.bits);
    arb_mul(row.dp + j, row.dp + j, row.logits + j, row.bits);
  }
}

/// β = σ(z) and 1 − β = σ(−z) from e^{−|z|}, both with full relative accuracy.
void break_stick(arb_ptr z, arb_ptr beta, arb_ptr rest, slong bits) {
  const bool positive = arf_sgn(arb_midref(z)) > 0;
  arb_ptr large = positive ? beta : rest, small = positive ? rest : beta;
  if (positive) arb_neg(z, z);
  arb_exp(z, z, bits);
  arb_add_ui(large, z, 1, bits);
  arb_inv(large, large, bits);
  arb_mul(small, z, large, bits);
}

/// dz_j = (1 − β_j) a_j − β_j F_j with a_j = A_j dP_j, F_j = Σ_{l<j} a_l + drem·rem.
void stickbreaking_backward(const BallRow& row, const BallMatrix& beta, const BallMatrix& rest, arb_srcptr rem) {
  Ball far, a;
  arb_mul(far, rem, row.dlse, row.bits);
  for (int64_t j = 0; j < row.keys; ++j) {
    arb_mul(a, row.logits + j, row.dp + j, row.bits);
    arb_mul(row.dp + j, a, rest.at(0, j), row.bits);
    arb_submul(row.dp + j, beta.at(0, j), far, row.bits);
    arb_add(far, far, a, row.bits);
  }
}

}  // namespace

void softmax_row(const BallRow& row, arb_ptr lse) {
  scale_logits(row);
  const int64_t top = largest(row);
  softmax_forward(row, top, lse);
  if (row.dp != nullptr) softmax_backward(row, top);
}

void stickbreaking_row(const BallRow& row, arb_ptr rem) {
  scale_logits(row);
  BallMatrix beta(1, row.keys), rest(1, row.keys);
  arb_one(rem);
  for (int64_t j = row.keys; j-- > 0;) {
    break_stick(row.logits + j, beta.at(0, j), rest.at(0, j), row.bits);
    arb_mul(row.logits + j, beta.at(0, j), rem, row.bits);
    arb_mul(rem, rem, rest.at(0, j), row.bits);
  }
  if (row.dp != nullptr) stickbreaking_backward(row, beta, rest, rem);
}

}  // namespace attest
