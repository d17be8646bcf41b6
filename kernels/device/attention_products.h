// The six products of both operators. T is the type of q, k, v and dout.
#pragma once

#include "kernels/device/fixed_order_products.h"

namespace attest::fixed_order {

template <class T>
PairProduct<T> logits_product(const AttentionParams& p) {
  return {p, p.q, p.k, p.head_dim, p.softmax_scale, p.logits};
}
template <class T>
PairProduct<T> dweights_product(const AttentionParams& p) {
  return {p, p.dout, p.v, p.head_dim_v, 1.0F, p.dlogits};
}
template <class T>
QueryProduct<T> out_product(const AttentionParams& p) {
  return {p, p.weights, p.v, p.head_dim_v, 1.0F, p.out};
}
template <class T>
QueryProduct<T> dq_product(const AttentionParams& p) {
  return {p, p.dlogits, p.k, p.head_dim, p.softmax_scale, p.dq};
}
template <class T>
KeyProduct<T> dk_product(const AttentionParams& p) {
  return {p, p.dlogits, p.q, p.head_dim, p.softmax_scale, p.dk};
}
template <class T>
KeyProduct<T> dv_product(const AttentionParams& p) {
  return {p, p.weights, p.dout, p.head_dim_v, 1.0F, p.dv};
}

}  // namespace attest::fixed_order
