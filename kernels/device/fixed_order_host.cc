#include "kernels/device/fixed_order_host.h"

#include <algorithm>

#include "kernels/device/narrow_float.h"

namespace attest::fixed_order {
namespace {

constexpr int64_t kBlock = 16;  // independent sums carried side by side; a constant, so that compilers vectorise over them
int64_t padded(int64_t n) { return (n + kBlock - 1) / kBlock * kBlock; }

float load(const void* data, int64_t index, ElementType type) {
  switch (type) {
    case ElementType::kFloat16: return widen(static_cast<const Float16*>(data)[index]);
    case ElementType::kBFloat16: return widen(static_cast<const BFloat16*>(data)[index]);
    case ElementType::kFloat32: return static_cast<const float*>(data)[index];
  }
  return 0.0F;
}

void store(void* data, int64_t index, ElementType type, float x) {
  switch (type) {
    case ElementType::kFloat16: static_cast<Float16*>(data)[index] = narrow<Float16>(x); break;
    case ElementType::kBFloat16: static_cast<BFloat16*>(data)[index] = narrow<BFloat16>(x); break;
    case ElementType::kFloat32: static_cast<float*>(data)[index] = x; break;
  }
}

/// fp32, row-major, each row padded with zeros to a multiple of kBlock.
struct Matrix {
  Matrix(int64_t rows, int64_t columns) : width(padded(columns)), data(static_cast<size_t>(rows * width)) {}
  float* row(int64_t r) { return data.data() + r * width; }
  int64_t width;
  std::vector<float> data;
};

Matrix unpack(const View<const void>& t, int64_t b, int64_t h, int64_t rows, int64_t dims, ElementType type) {
  Matrix m(rows, dims);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t d = 0; d < dims; ++d) m.row(r)[d] = load(t.data, t.at(b, h, r, d), type);
  return m;
}

Matrix transposed(Matrix& m, int64_t rows, int64_t dims) {
  Matrix t(dims, rows);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t d = 0; d < dims; ++d) t.row(d)[r] = m.row(r)[d];
  return t;
}

void pack(Matrix& m, const View<void>& t, int64_t b, int64_t h, int64_t rows, int64_t dims, ElementType type, float factor) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t d = 0; d < dims; ++d) store(t.data, t.at(b, h, r, d), type, factor * m.row(r)[d]);
}

/// sums[j] = factor · Σ_d x[d]·by_dim[d][j] for the first `count` j, d ascending.
void dots(const float* x, Matrix& by_dim, int64_t dims, int64_t count, float factor, float* sums) {
  for (int64_t j = 0; j < count; j += kBlock) {
    float sum[kBlock] = {};
    for (int64_t d = 0; d < dims; ++d) {
      const float* column = by_dim.row(d) + j;
      for (int64_t l = 0; l < kBlock; ++l) sum[l] += x[d] * column[l];
    }
    for (int64_t l = 0; l < kBlock; ++l) sums[j + l] = factor * sum[l];
  }
}

/// sums[d] += weight·x[d] for every d.
void add_scaled(float weight, const float* x, int64_t width, float* sums) {
  for (int64_t d = 0; d < width; d += kBlock)
    for (int64_t l = 0; l < kBlock; ++l) sums[d + l] += weight * x[d + l];
}

/// One KV head: its operands in fp32 and the sums for its gradients.
struct KvHead {
  KvHead(const AttentionParams& p, int64_t b, int64_t head)
      : k(unpack(p.k, b, head, p.seqlen_kv, p.head_dim, p.type)),
        v(unpack(p.v, b, head, p.seqlen_kv, p.head_dim_v, p.type)),
        k_by_dim(transposed(k, p.seqlen_kv, p.head_dim)),
        v_by_dim(transposed(v, p.backward() ? p.seqlen_kv : 0, p.head_dim_v)),
        dk(p.backward() ? p.seqlen_kv : 0, p.head_dim),
        dv(p.backward() ? p.seqlen_kv : 0, p.head_dim_v) {}
  Matrix k, v, k_by_dim, v_by_dim, dk, dv;
};

/// One query head: its operands in fp32 and the sums for out and dq.
struct QHead {
  QHead(const AttentionParams& p, int64_t b, int64_t head)
      : q(unpack(p.q, b, head, p.seqlen_q, p.head_dim, p.type)),
        dout(unpack(p.dout, b, head, p.backward() ? p.seqlen_q : 0, p.head_dim_v, p.type)),
        out(p.seqlen_q, p.head_dim_v),
        dq(p.backward() ? p.seqlen_q : 0, p.head_dim) {}
  Matrix q, dout, out, dq;
};

void list_visible(const AttentionParams& p, int64_t b, int64_t query, std::vector<int64_t>& visible) {
  visible.clear();
  for (int64_t j = 0; j < p.visible_keys(query); ++j)
    if (p.kept(b, j)) visible.push_back(j);
}

void row_gradients(const AttentionParams& p, const RowRule& rule, int64_t i, const float* dlse, HostRow& row, QHead& head,
                   KvHead& kv) {
  dots(head.dout.row(i), kv.v_by_dim, p.head_dim_v, p.visible_keys(i), 1.0F, row.dweights.data());
  rule.backward(row, dlse);
  for (const int64_t j : row.visible) {
    add_scaled(row.dlogits[j], kv.k.row(j), kv.k.width, head.dq.row(i));
    add_scaled(row.dlogits[j], head.q.row(i), head.q.width, kv.dk.row(j));
    add_scaled(row.weights[j], head.dout.row(i), head.dout.width, kv.dv.row(j));
  }
}

void run_head(const AttentionParams& p, const RowRule& rule, int64_t b, int64_t h, HostRow& row, KvHead& kv) {
  QHead head(p, b, h);
  for (int64_t i = 0; i < p.seqlen_q; ++i) {
    list_visible(p, b, i, row.visible);
    dots(head.q.row(i), kv.k_by_dim, p.head_dim, p.visible_keys(i), p.softmax_scale, row.logits.data());
    rule.forward(row);
    p.lse.data[p.lse.at(b, h, i)] = row.lse;
    for (const int64_t j : row.visible) add_scaled(row.weights[j], kv.v.row(j), kv.v.width, head.out.row(i));
    const float* dlse = p.dlse.data == nullptr ? nullptr : p.dlse.data + p.dlse.at(b, h, i);
    if (p.backward()) row_gradients(p, rule, i, dlse, row, head, kv);
  }
  pack(head.out, p.out, b, h, p.seqlen_q, p.head_dim_v, p.type, 1.0F);
  if (p.backward()) pack(head.dq, p.dq, b, h, p.seqlen_q, p.head_dim, p.type, p.softmax_scale);
}

}  // namespace

void run_on_host(const AttentionParams& p, const RowRule& rule) {
  HostRow row;
  for (auto* values : {&row.logits, &row.weights, &row.dweights, &row.dlogits})
    values->resize(static_cast<size_t>(padded(p.seqlen_kv)));
  for (int64_t b = 0; b < p.batch; ++b) {
    for (int64_t head = 0; head < p.num_heads_kv; ++head) {
      KvHead kv(p, b, head);
      for (int64_t h = head * p.group(); h < (head + 1) * p.group(); ++h) run_head(p, rule, b, h, row, kv);
      if (!p.backward()) continue;
      pack(kv.dk, p.dk, b, head, p.seqlen_kv, p.head_dim, p.type, p.softmax_scale);
      pack(kv.dv, p.dv, b, head, p.seqlen_kv, p.head_dim_v, p.type, 1.0F);
    }
  }
}

}  // namespace attest::fixed_order
