// The three shapes of product that attention is made of, for fixed_order_tile.h. T is the type of q, k, v and dout.
#pragma once

#include "kernels/device/attention_params.h"
#include "kernels/device/fixed_order_tile.h"
#include "kernels/device/narrow_float.h"

namespace attest::fixed_order {

template <class T>
ATTEST_HOST_DEVICE float load(const View<const void>& t, int64_t b, int64_t h, int64_t row, int64_t dim) {
  return widen(static_cast<const T*>(t.data)[t.at(b, h, row, dim)]);
}
template <class T>
ATTEST_HOST_DEVICE void save(const View<void>& t, int64_t b, int64_t h, int64_t row, int64_t dim, float x) {
  static_cast<T*>(t.data)[t.at(b, h, row, dim)] = narrow<T>(x);
}
ATTEST_HOST_DEVICE inline int64_t workspace_index(const AttentionParams& p, int64_t b, int64_t h, int64_t query, int64_t key) {
  return ((b * p.num_heads_q + h) * p.seqlen_q + query) * p.seqlen_kv + key;
}
ATTEST_HOST_DEVICE inline int64_t last_visible_keys(const AttentionParams& p, int64_t first_row) {
  return p.visible_keys(first_row + kTile < p.seqlen_q ? first_row + kTile - 1 : p.seqlen_q - 1);
}

/// result[query, key] = factor · Σ_dim by_query·by_key for visible pairs: z from q and k, dP from dout and v.
template <class T>
struct PairProduct {
  static constexpr bool kMasked = false, kLeftAlongDepth = true, kRightAlongDepth = true;
  AttentionParams params;
  View<const void> by_query, by_key;
  int64_t dims;
  float factor;
  float* result;

  ATTEST_HOST_DEVICE int64_t heads() const { return params.num_heads_q; }
  ATTEST_HOST_DEVICE int64_t rows() const { return params.seqlen_q; }
  ATTEST_HOST_DEVICE int64_t columns() const { return params.seqlen_kv; }
  ATTEST_HOST_DEVICE int64_t passes() const { return 1; }
  ATTEST_HOST_DEVICE DepthRange depth(const TileAt& at) const {
    return {0, at.column < last_visible_keys(params, at.row) ? dims : 0};
  }
  ATTEST_HOST_DEVICE bool adds(const TileAt&, int64_t, int64_t, int64_t) const { return true; }
  ATTEST_HOST_DEVICE float left(const TileAt& at, int64_t, int64_t row, int64_t dim) const {
    return load<T>(by_query, at.batch, at.head, row, dim);
  }
  ATTEST_HOST_DEVICE float right(const TileAt& at, int64_t, int64_t dim, int64_t key) const {
    return load<T>(by_key, at.batch, at.head / params.group(), key, dim);
  }
  ATTEST_HOST_DEVICE void store(const TileAt& at, int64_t row, int64_t key, float sum) const {
    if (key < params.visible_keys(row) && params.kept(at.batch, key))
      result[workspace_index(params, at.batch, at.head, row, key)] = factor * sum;
  }
};

/// result[query, dim] = factor · Σ_key pairs·by_key over visible keys: out from the weights and v, dq from dz and k.
template <class T>
struct QueryProduct {
  static constexpr bool kMasked = true, kLeftAlongDepth = true, kRightAlongDepth = false;
  AttentionParams params;
  const float* pairs;
  View<const void> by_key;
  int64_t dims;
  float factor;
  View<void> result;

  ATTEST_HOST_DEVICE int64_t heads() const { return params.num_heads_q; }
  ATTEST_HOST_DEVICE int64_t rows() const { return params.seqlen_q; }
  ATTEST_HOST_DEVICE int64_t columns() const { return dims; }
  ATTEST_HOST_DEVICE int64_t passes() const { return 1; }
  ATTEST_HOST_DEVICE DepthRange depth(const TileAt& at) const { return {0, last_visible_keys(params, at.row)}; }
  ATTEST_HOST_DEVICE bool adds(const TileAt& at, int64_t, int64_t row, int64_t key) const {
    return key < params.visible_keys(row) && params.kept(at.batch, key);
  }
  ATTEST_HOST_DEVICE float left(const TileAt& at, int64_t, int64_t row, int64_t key) const {
    return pairs[workspace_index(params, at.batch, at.head, row, key)];
  }
  ATTEST_HOST_DEVICE float right(const TileAt& at, int64_t, int64_t key, int64_t dim) const {
    return load<T>(by_key, at.batch, at.head / params.group(), key, dim);
  }
  ATTEST_HOST_DEVICE void store(const TileAt& at, int64_t row, int64_t dim, float sum) const {
    save<T>(result, at.batch, at.head, row, dim, factor * sum);
  }
};

/// result[key, dim] = factor · Σ_head Σ_query pairs·by_query over the group's heads in order and within each the queries that
/// see the key, ascending: dv from the weights and dout, dk from dz and q.
template <class T>
struct KeyProduct {
  static constexpr bool kMasked = true, kLeftAlongDepth = false, kRightAlongDepth = false;
  AttentionParams params;
  const float* pairs;
  View<const void> by_query;
  int64_t dims;
  float factor;
  View<void> result;

  ATTEST_HOST_DEVICE int64_t heads() const { return params.num_heads_kv; }
  ATTEST_HOST_DEVICE int64_t rows() const { return params.seqlen_kv; }
  ATTEST_HOST_DEVICE int64_t columns() const { return dims; }
  ATTEST_HOST_DEVICE int64_t passes() const { return params.group(); }
  ATTEST_HOST_DEVICE int64_t query_head(const TileAt& at, int64_t pass) const { return at.head * params.group() + pass; }
  ATTEST_HOST_DEVICE DepthRange depth(const TileAt& at) const { return {params.first_query(at.row), params.seqlen_q}; }
  ATTEST_HOST_DEVICE bool adds(const TileAt& at, int64_t, int64_t key, int64_t query) const {
    return key < params.visible_keys(query) && params.kept(at.batch, key);
  }
  ATTEST_HOST_DEVICE float left(const TileAt& at, int64_t pass, int64_t key, int64_t query) const {
    return pairs[workspace_index(params, at.batch, query_head(at, pass), query, key)];
  }
  ATTEST_HOST_DEVICE float right(const TileAt& at, int64_t pass, int64_t query, int64_t dim) const {
    return load<T>(by_query, at.batch, query_head(at, pass), query, dim);
  }
  ATTEST_HOST_DEVICE void store(const TileAt& at, int64_t key, int64_t dim, float sum) const {
    save<T>(result, at.batch, at.head, key, dim, factor * sum);
  }
};

}  // namespace attest::fixed_order
