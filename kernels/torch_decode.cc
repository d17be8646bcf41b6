// Registers attest::stickbreaking_decode and attest::kv_cache_append_ with Torch, for CPU and Meta. On a CPU each batch element is given
// to stickbreaking.cpu.fixed_order with the keys it has.
#include "kernels/torch_decode.h"

#include <torch/library.h>

#include <cmath>
#include <tuple>

#include "harness/slice.h"
#include "harness/variant.h"

namespace attest {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;
using Pair = std::tuple<Tensor, Tensor>;

constexpr int64_t kMostQueries = 16;

void check_tensors(const char* name, const Tensor& k_cache, const Tensor& v_cache, const Tensor& seqlens, const Tensor& other,
                   const char* what) {
  TORCH_CHECK(other.dim() == 4 && k_cache.dim() == 4 && v_cache.dim() == 4, name, ": ", what,
              ", k_cache and v_cache must be [batch, heads, length, head_dim], got ", other.dim(), ", ", k_cache.dim(), " and ",
              v_cache.dim(), " dimensions");
  const auto type = other.scalar_type();
  TORCH_CHECK(type == at::kHalf || type == at::kBFloat16 || type == at::kFloat, name, ": dtype ", type,
              " is not supported; use float16, bfloat16 or float32");
  TORCH_CHECK(k_cache.scalar_type() == type && v_cache.scalar_type() == type, name, ": ", what,
              ", k_cache and v_cache must have one dtype, got ", type, ", ", k_cache.scalar_type(), " and ", v_cache.scalar_type());
  TORCH_CHECK(seqlens.scalar_type() == at::kInt, name, ": seqlens must be int32, got ", seqlens.scalar_type());
  TORCH_CHECK(k_cache.device() == other.device() && v_cache.device() == other.device() && seqlens.device() == other.device(), name,
              ": ", what, ", k_cache, v_cache and seqlens must be on one device, got ", other.device(), ", ", k_cache.device(), ", ",
              v_cache.device(), " and ", seqlens.device());
  const auto ks = k_cache.sym_sizes(), vs = v_cache.sym_sizes();
  for (const auto& sizes : {ks, vs, other.sym_sizes()})
    for (const auto& size : sizes)
      TORCH_CHECK(size >= 1, name, ": every size must be at least 1, got ", what, " ", other.sym_sizes(), ", k_cache ", ks,
                  ", v_cache ", vs);
  TORCH_CHECK(ks.slice(0, 3) == vs.slice(0, 3), name, ": k_cache and v_cache must have the same batch size, heads and capacity, got ",
              ks, " and ", vs);
  TORCH_CHECK(other.sym_size(0) == ks[0], name, ": ", what, " and k_cache must have one batch size, got ", other.sym_size(0), " and ",
              ks[0]);
  TORCH_CHECK(other.sym_size(3) == ks[3], name, ": ", what, " and k_cache must have the same head_dim, got ", other.sym_size(3),
              " and ", ks[3]);
  TORCH_CHECK(seqlens.dim() == 1 && seqlens.sym_size(0) == ks[0], name, ": seqlens must be [batch], got ", seqlens.sym_sizes());
}

}  // namespace

void check_decode(const Tensor& q, const Tensor& k_cache, const Tensor& v_cache, const Tensor& seqlens, const MaybeTensor& mask,
                  std::optional<double> scale) {
  const char* name = kDecodeOperator;
  check_tensors(name, k_cache, v_cache, seqlens, q, "q");
  TORCH_CHECK(q.sym_size(1) % k_cache.sym_size(1) == 0, name, ": the heads of q (", q.sym_size(1),
              ") must be a multiple of those of k_cache (", k_cache.sym_size(1), ")");
  TORCH_CHECK(q.sym_size(2) <= kMostQueries, name, ": q has ", q.sym_size(2), " queries a sequence, at most ", kMostQueries,
              " are supported");
  TORCH_CHECK(!scale || std::isfinite(static_cast<float>(*scale)), name, ": scale must be finite in float32, got ",
              scale.value_or(0));
  if (!mask || !mask->defined()) return;
  TORCH_CHECK(mask->scalar_type() == at::kBool, name, ": key_padding_mask must be bool (true: the key exists), got ",
              mask->scalar_type());
  TORCH_CHECK(mask->device() == q.device(), name, ": key_padding_mask is on ", mask->device(), ", q on ", q.device());
  TORCH_CHECK(mask->dim() == 2 && mask->sym_size(0) == q.sym_size(0) && mask->sym_size(1) == k_cache.sym_size(2), name,
              ": key_padding_mask must be [batch, capacity], got ", mask->sym_sizes());
}

void check_append(const Tensor& k_cache, const Tensor& v_cache, const Tensor& seqlens, const Tensor& k, const Tensor& v) {
  const char* name = kAppendOperator;
  check_tensors(name, k_cache, v_cache, seqlens, k, "k");
  TORCH_CHECK(v.dim() == 4 && v.scalar_type() == k.scalar_type() && v.device() == k.device(), name,
              ": v must be [batch, heads, length, head_dim_v] of k's dtype on k's device, got ", v.sym_sizes(), ", ", v.scalar_type(),
              " on ", v.device());
  TORCH_CHECK(k.sym_sizes().slice(0, 3) == v.sym_sizes().slice(0, 3), name,
              ": k and v must have the same batch size, heads and length, got ", k.sym_sizes(), " and ", v.sym_sizes());
  TORCH_CHECK(k.sym_size(1) == k_cache.sym_size(1), name, ": k and k_cache must have the same number of heads, got ", k.sym_size(1),
              " and ", k_cache.sym_size(1));
  TORCH_CHECK(v.sym_size(3) == v_cache.sym_size(3), name, ": v and v_cache must have the same head_dim, got ", v.sym_size(3), " and ",
              v_cache.sym_size(3));
  TORCH_CHECK(seqlens.is_contiguous(), name, ": seqlens must be contiguous, since it is written to; got strides ", seqlens.strides());
}

Inputs decode_inputs(const Tensor& q, const Tensor& k_cache, const Tensor& v_cache, const MaybeTensor& mask, bool attend_current,
                     std::optional<double> scale) {
  const AttentionProblem problem{
      .op = Op::kStickBreaking,
      .dtype = dtype_of(q.scalar_type()),
      .batch = q.size(0),
      .num_heads_q = q.size(1),
      .num_heads_kv = k_cache.size(1),
      .seqlen_q = q.size(2),
      .seqlen_kv = k_cache.size(2),
      .head_dim = q.size(3),
      .head_dim_v = v_cache.size(3),
      .causal = true,
      .attend_current = attend_current,
      .softmax_scale = scale ? static_cast<float>(*scale) : default_softmax_scale(q.size(3)),
  };
  return {.problem = problem, .q = q, .k = k_cache, .v = v_cache, .key_padding_mask = mask.value_or(Tensor())};
}

namespace {

/// One batch element with the keys that it has.
Inputs with_length(const Inputs& all, int64_t b, int64_t length) {
  Inputs one = slice_batch(all, b, 1);
  one.problem.seqlen_kv = length;
  one.k = one.k.narrow(2, 0, length);
  one.v = one.v.narrow(2, 0, length);
  if (one.key_padding_mask.defined()) one.key_padding_mask = one.key_padding_mask.narrow(1, 0, length);
  return one;
}

Pair decode_cpu(const Tensor& q, const Tensor& k_cache, const Tensor& v_cache, const Tensor& seqlens, const MaybeTensor& mask,
                bool attend_current, std::optional<double> scale) {
  check_decode(q, k_cache, v_cache, seqlens, mask, scale);
  const Inputs all = decode_inputs(q, k_cache, v_cache, mask, attend_current, scale);
  const AttentionProblem& p = all.problem;
  const Tensor out = at::zeros({p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v}, q.options());
  const Tensor rem = at::ones({p.batch, p.num_heads_q, p.seqlen_q}, q.options().dtype(at::kFloat));
  const Tensor lengths = seqlens.contiguous();
  for (int64_t b = 0; b < p.batch; ++b) {
    const int64_t length = lengths.data_ptr<int32_t>()[b];
    TORCH_CHECK(0 <= length && length <= p.seqlen_kv, kDecodeOperator, ": seqlens[", b, "] is ", length, ", outside [0, capacity ",
                p.seqlen_kv, "]");
    if (length == 0) continue;
    const Outputs one = Registry<KernelVariant>::instance().find("stickbreaking.cpu.fixed_order")->run(with_length(all, b, length));
    out.select(0, b).copy_(one.out[0]);
    rem.select(0, b).copy_(one.lse[0]);
  }
  return {out, rem};
}

void append_cpu(Tensor& k_cache, Tensor& v_cache, Tensor& seqlens, const Tensor& k, const Tensor& v) {
  check_append(k_cache, v_cache, seqlens, k, v);
  const int64_t rows = k.size(2), capacity = k_cache.size(2);
  const Tensor lengths = seqlens.clone();
  const auto length = [&](int64_t b) { return int64_t{lengths.data_ptr<int32_t>()[b]}; };
  for (int64_t b = 0; b < k.size(0); ++b)
    TORCH_CHECK(0 <= length(b) && length(b) + rows <= capacity, kAppendOperator, ": ", rows, " more rows than seqlens[", b, "] = ",
                length(b), " don't fit a capacity of ", capacity, "; nothing was written");
  for (int64_t b = 0; b < k.size(0); ++b) {
    k_cache.select(0, b).narrow(1, length(b), rows).copy_(k.select(0, b));
    v_cache.select(0, b).narrow(1, length(b), rows).copy_(v.select(0, b));
  }
  seqlens.add_(rows);
}

Pair decode_meta(const Tensor& q, const Tensor& k_cache, const Tensor& v_cache, const Tensor& seqlens, const MaybeTensor& mask, bool,
                 std::optional<double> scale) {
  check_decode(q, k_cache, v_cache, seqlens, mask, scale);
  const auto sizes = q.sym_sizes();
  return {q.new_empty_symint({sizes[0], sizes[1], sizes[2], v_cache.sym_size(3)}),
          q.new_empty_symint({sizes[0], sizes[1], sizes[2]}, q.options().dtype(at::kFloat))};
}

void append_meta(Tensor& k_cache, Tensor& v_cache, Tensor& seqlens, const Tensor& k, const Tensor& v) {
  check_append(k_cache, v_cache, seqlens, k, v);
}

TORCH_LIBRARY_FRAGMENT(attest, m) {
  m.def("stickbreaking_decode(Tensor q, Tensor k_cache, Tensor v_cache, Tensor seqlens, Tensor? key_padding_mask=None, "
        "bool attend_current=False, float? scale=None) -> (Tensor out, Tensor rem)");
  m.def("kv_cache_append_(Tensor(a!) k_cache, Tensor(b!) v_cache, Tensor(c!) seqlens, Tensor k, Tensor v) -> ()");
}

TORCH_LIBRARY_IMPL(attest, CPU, m) {
  m.impl("stickbreaking_decode", decode_cpu);
  m.impl("kv_cache_append_", append_cpu);
}

TORCH_LIBRARY_IMPL(attest, Meta, m) {
  m.impl("stickbreaking_decode", decode_meta);
  m.impl("kv_cache_append_", append_meta);
}

}  // namespace
}  // namespace attest
