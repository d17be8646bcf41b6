// The two kernels of softmax.cuda.fixed_order that work on rows, as code that a host can run too: one block a row, thread t is
// leaf t and visits the visible keys t, t + 256, … ascending; the leaves meet in a halving tree.
#pragma once

#include "kernels/device/attention_params.h"
#include "kernels/device/cooperative.h"
#include "kernels/device/fixed_order_math.h"

namespace attest::fixed_order {

struct SoftmaxLeaves {
  float largest[kThreads];
  float sum[kThreads];
  int64_t key[kThreads];  // of the largest
};

/// A row's place: row = (batch · Hq + head) · Sq + query.
struct SoftmaxRow {
  ATTEST_HOST_DEVICE SoftmaxRow(const AttentionParams& p, int64_t row)
      : batch(row / p.seqlen_q / p.num_heads_q),
        head(row / p.seqlen_q % p.num_heads_q),
        query(row % p.seqlen_q),
        keys(p.visible_keys(query)),
        begin(row * p.seqlen_kv) {}
  int64_t batch, head, query, keys, begin;  // begin: of the row in the workspace
};

template <class Visit>
ATTEST_HOST_DEVICE void visit_leaf(const AttentionParams& p, const SoftmaxRow& row, int thread, Visit visit) {
  for (int64_t key = thread; key < row.keys; key += kThreads)
    if (p.kept(row.batch, key)) visit(key);
}

/// weights: z → P; lse. Without a visible key: max = −inf, Σ = 0, lse = −inf.
template <class Block>
ATTEST_HOST_DEVICE void softmax_row(Block& block, const AttentionParams& p, SoftmaxLeaves& leaves, int64_t index) {
  const SoftmaxRow row(p, index);
  float* weights = p.weights + row.begin;
  block.each([&](int thread, NoState&) {
    float largest = -float_of(kInfinityBits);
    visit_leaf(p, row, thread, [&](int64_t key) { largest = weights[key] > largest ? weights[key] : largest; });
    leaves.largest[thread] = largest;
  });
  halving_tree(block, [&](int t, int other) {
    leaves.largest[t] = leaves.largest[other] > leaves.largest[t] ? leaves.largest[other] : leaves.largest[t];
  });
  block.each([&](int thread, NoState&) {
    float sum = 0.0F;
    visit_leaf(p, row, thread, [&](int64_t key) {
      weights[key] = exp(weights[key] - leaves.largest[0]);
      sum += weights[key];
    });
    leaves.sum[thread] = sum;
  });
  halving_tree(block, [&](int t, int other) { leaves.sum[t] += leaves.sum[other]; });
  block.each([&](int thread, NoState&) {
    visit_leaf(p, row, thread, [&](int64_t key) { weights[key] = weights[key] / leaves.sum[0]; });
    if (thread == 0) p.lse.data[p.lse.at(row.batch, row.head, row.query)] = leaves.largest[0] + log(leaves.sum[0]);
  });
}

/// key[0] becomes the first of the most probable keys; −1 where no key is visible.
template <class Block>
ATTEST_HOST_DEVICE void likeliest_key(Block& block, const AttentionParams& p, SoftmaxLeaves& leaves, const SoftmaxRow& row) {
  const float* weights = p.weights + row.begin;
  block.each([&](int thread, NoState&) {
    leaves.largest[thread] = -1.0F;
    leaves.key[thread] = -1;
    visit_leaf(p, row, thread, [&](int64_t key) {
      if (!(weights[key] > leaves.largest[thread])) return;
      leaves.largest[thread] = weights[key];
      leaves.key[thread] = key;
    });
  });
  halving_tree(block, [&](int t, int other) {
    const bool earlier = leaves.largest[other] == leaves.largest[t] && leaves.key[other] < leaves.key[t];
    if (!(leaves.largest[other] > leaves.largest[t]) && !earlier) return;
    leaves.largest[t] = leaves.largest[other];
    leaves.key[t] = leaves.key[other];
  });
}

/// dlogits: dP → dz = P·((d − Σ P·d) + dlse), d = dP − dP at the likeliest key.
template <class Block>
ATTEST_HOST_DEVICE void softmax_row_backward(Block& block, const AttentionParams& p, SoftmaxLeaves& leaves, int64_t index) {
  const SoftmaxRow row(p, index);
  const float* weights = p.weights + row.begin;
  float* d = p.dlogits + row.begin;
  likeliest_key(block, p, leaves, row);
  const float base = leaves.key[0] < 0 ? 0.0F : d[leaves.key[0]];  // read before the last phase overwrites it
  block.each([&](int thread, NoState&) {
    float sum = 0.0F;
    visit_leaf(p, row, thread, [&](int64_t key) { sum += weights[key] * (d[key] - base); });
    leaves.sum[thread] = sum;
  });
  halving_tree(block, [&](int t, int other) { leaves.sum[t] += leaves.sum[other]; });
  const float* dlse = p.dlse.data == nullptr ? nullptr : p.dlse.data + p.dlse.at(row.batch, row.head, row.query);
  block.each([&](int thread, NoState&) {
    visit_leaf(p, row, thread, [&](int64_t key) {
      const float centred = (d[key] - base) - leaves.sum[0];
      d[key] = weights[key] * (dlse == nullptr ? centred : centred + *dlse);
    });
  });
}

}  // namespace attest::fixed_order
