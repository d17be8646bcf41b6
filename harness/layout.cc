#include "harness/layout.h"

#include <limits>

#include "harness/noise.h"

namespace attest {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// One operand, of sizes [B, H, S, D].
struct Operand {
  std::array<int64_t, 4> sizes;
  at::ScalarType type;
  uint32_t draw;  // for the pad or the offset
};

at::Tensor nan(at::IntArrayRef sizes, at::ScalarType type) { return at::full(sizes, kNaN, at::TensorOptions().dtype(type)); }

at::Tensor transposed(const Operand& o) { return nan({o.sizes[0], o.sizes[2], o.sizes[1], o.sizes[3]}, o.type).transpose(1, 2); }

at::Tensor padded(const Operand& o) {
  constexpr int64_t kPads[] = {1, 2, 3, 8};
  return nan({o.sizes[0], o.sizes[1], o.sizes[2], o.sizes[3] + kPads[o.draw % 4]}, o.type).narrow(3, 0, o.sizes[3]);
}

at::Tensor misaligned(const Operand& o) {
  const int64_t elements = o.sizes[0] * o.sizes[1] * o.sizes[2] * o.sizes[3];
  return nan({elements + 8}, o.type).narrow(0, 1 + o.draw % 7, elements).view(o.sizes);
}

at::Tensor place(const Operand& o, Layout layout, bool packed) {
  if (packed) return place({{o.sizes[0], o.sizes[2], o.sizes[1], o.sizes[3]}, o.type, o.draw}, layout, false).transpose(1, 2);
  switch (layout) {
    case Layout::kTransposed:
    case Layout::kPackedQkv:
      return transposed(o);
    case Layout::kPadded:
      return padded(o);
    case Layout::kMisaligned:
      return misaligned(o);
    case Layout::kExpanded:
      return nan({1, o.sizes[1], o.sizes[2], o.sizes[3]}, o.type).expand(o.sizes);
    case Layout::kContiguous:
      break;
  }
  return nan(o.sizes, o.type);
}

}  // namespace

Inputs allocate(const Case& c, const AttentionProblem& p) {
  const bool packed = c.sequences == Sequences::kPacked;
  const at::ScalarType type = scalar_type(p.dtype);
  const PhiloxBlock draw = Noise(c.seed).block(Stream::kLayout, {});
  Inputs in{.problem = p};
  in.dout = place({{p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v}, type, draw[3]}, c.layout, packed);
  if (c.layout == Layout::kPackedQkv && p.seqlen_q == p.seqlen_kv && p.head_dim == p.head_dim_v) {
    const at::Tensor buffer = transposed({{p.batch, p.num_heads_q + 2 * p.num_heads_kv, p.seqlen_q, p.head_dim}, type, 0});
    in.q = buffer.narrow(1, 0, p.num_heads_q);
    in.k = buffer.narrow(1, p.num_heads_q, p.num_heads_kv);
    in.v = buffer.narrow(1, p.num_heads_q + p.num_heads_kv, p.num_heads_kv);
    return in;
  }
  in.q = place({{p.batch, p.num_heads_q, p.seqlen_q, p.head_dim}, type, draw[0]}, c.layout, packed);
  in.k = place({{p.batch, p.num_heads_kv, p.seqlen_kv, p.head_dim}, type, draw[1]}, c.layout, packed);
  in.v = place({{p.batch, p.num_heads_kv, p.seqlen_kv, p.head_dim_v}, type, draw[2]}, c.layout, packed);
  return in;
}

}  // namespace attest
