// Operands, the mask as bits, rows that no sequence has, and what is refused. See host.h.
#include "kernels/ampere/host.h"
#include "kernels/ampere/launch.cuh"
#include "kernels/hopper/fused_mask.cuh"

namespace attest::portable {
namespace {

constexpr int kMostHeadDim = 256;

bool unit_inner(const View<void>& x, int64_t columns) { return x.data == nullptr || columns == 1 || x.dim == 1; }

/// A row of an output, 16-bit or fp32, that belongs to no sequence gets `value`.
struct Blank {
  void* data;
  int64_t batches, heads, rows, columns, batch, head, row;
  const int32_t *begins, *used;
  int64_t count;
  float value;  // of fp32
  bool narrow;  // 16-bit zeros
};

__global__ void __launch_bounds__(kThreads) blank_rows(const __grid_constant__ Blank b) {
  const int64_t all = b.batches * b.heads * b.rows;
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < all; i += gridDim.x * int64_t{kThreads}) {
    const int64_t row = i % b.rows, head = i / b.rows % b.heads, batch = i / b.rows / b.heads;
    const int64_t end = b.begins != nullptr ? b.begins[b.count] : b.used != nullptr ? b.used[batch] : b.rows;
    if (row < end) continue;
    const int64_t at = batch * b.batch + head * b.head + row * b.row;
    for (int64_t c = 0; c < b.columns; ++c) {
      if (b.narrow) static_cast<uint16_t*>(b.data)[at + c] = 0;
      if (!b.narrow) static_cast<float*>(b.data)[at + c] = b.value;
    }
  }
}

template <class T>
void blank(const AttentionParams& p, const View<T>& x, bool queries, int64_t columns, const Lengths& lengths, float value) {
  if (x.data == nullptr) return;
  const Blank b{x.data, p.batch, queries ? p.num_heads_q : p.num_heads_kv, queries ? p.seqlen_q : p.seqlen_kv, columns,
                x.batch, x.head, x.row, queries ? lengths.begins_q : lengths.begins_kv, queries ? lengths.used_q : lengths.used_kv,
                lengths.count, value, !std::is_same_v<T, float>};
  const int64_t rows = b.batches * b.heads * b.rows;
  const auto blocks = static_cast<unsigned>(std::min<int64_t>((rows + kThreads - 1) / kThreads, 4096));
  if (blocks == 0) return;
  blank_rows<<<blocks, kThreads, 0, static_cast<cudaStream_t>(p.stream)>>>(b);
  check_launch("blank_rows");
}

}  // namespace

std::optional<std::string> unsupported_reason(const AttentionParams& p) {
  const auto text = [](const char* what, int64_t n, const char* rest) { return std::string(what) + std::to_string(n) + rest; };
  if (p.type == ElementType::kFloat32) return "fp32 inputs: only fp16 and bf16 are supported";
  if (p.head_dim > kMostHeadDim) return text("head_dim ", p.head_dim, " is larger than 256");
  if (p.head_dim_v > kMostHeadDim) return text("head_dim_v ", p.head_dim_v, " is larger than 256");
  if (p.num_heads_q % p.num_heads_kv != 0) return text("num_heads_q is not a multiple of num_heads_kv ", p.num_heads_kv, "");
  if (p.seqlen_kv < 1 || p.head_dim < 1 || p.head_dim_v < 1) return "there is no key";
  if (std::max(p.seqlen_q, p.seqlen_kv) > (int64_t{1} << 30)) return "sequences are longer than 2^30";
  if (p.batch * p.num_heads_q * 2 * tiles_of(std::max(p.seqlen_q, p.seqlen_kv)) > (int64_t{1} << 30)) return "more than 2^29 tiles of queries or keys";
  if (!unit_inner(p.out, p.head_dim_v) || !unit_inner(p.dq, p.head_dim) || !unit_inner(p.dk, p.head_dim) || !unit_inner(p.dv, p.head_dim_v))
    return "an output whose inner stride is not 1";
  const int major = fused::attribute(cudaDevAttrComputeCapabilityMajor, p.device);
  if (major < 8) return text("a device of compute capability ", major, ".x: these kernels need 8.0");
  return std::nullopt;
}

Keep take_keep(const AttentionParams& p, fused::Arena& arena) {
  if (p.keep == nullptr) return {};
  const int64_t words = (p.seqlen_kv + 127) / 128 * 4;
  return {arena.take<uint32_t>(p.batch * words), static_cast<int>(words)};
}
void pack_keep(const AttentionParams& p, const Keep& keep) {
  if (keep.bits == nullptr) return;
  const int64_t count = p.batch * keep.words;
  const auto blocks = static_cast<unsigned>(std::min<int64_t>((count + fused::kMaskThreads - 1) / fused::kMaskThreads, 2048));
  fused::pack_mask<<<blocks, fused::kMaskThreads, 0, static_cast<cudaStream_t>(p.stream)>>>(
      p.keep, p.keep_batch, p.keep_key, p.seqlen_kv, keep.words, count, const_cast<uint32_t*>(keep.bits));
  check_launch("pack_mask");
}

Problem problem_of(const AttentionParams& p, const Keep& keep, const Lengths& lengths) {
  // The floor keeps −∞ · scale = −∞ where the scale is a subnormal; a scale of 0 makes every product 0 instead.
  const float scale = p.softmax_scale == 0.0F ? 1.0F : std::abs(p.softmax_scale);
  const auto number = [](int64_t n) { return static_cast<int>(n); };
  return {.sequences = number(lengths.packed() ? lengths.count : p.batch),
          .heads = number(p.num_heads_q),
          .group = number(p.group()),
          .seqlen_q = number(p.seqlen_q),
          .seqlen_kv = number(p.seqlen_kv),
          .most_q = number(lengths.most_q > 0 ? lengths.most_q : p.seqlen_q),
          .most_kv = number(lengths.most_kv > 0 ? lengths.most_kv : p.seqlen_kv),
          .causal = p.causal,
          .hidden = p.attend_current ? 0 : 1,
          .logit_scale = std::max(scale * fused::kLog2E, std::numeric_limits<float>::min()),
          .sign_mask = p.softmax_scale == 0.0F ? 0U : ~0U,
          .sign_flip = p.softmax_scale < 0.0F ? 0x80008000U : 0U,
          .keep = keep.bits,
          .keep_words = keep.words,
          .begins_q = lengths.begins_q,
          .begins_kv = lengths.begins_kv,
          .used_q = lengths.used_q,
          .used_kv = lengths.used_kv};
}

Operand operand_of(const AttentionParams& p, const View<const void>& x, int64_t heads, int64_t rows, int64_t columns) {
  const auto whole = [](int64_t size, int64_t stride) { return size == 1 || stride % 8 == 0; };
  const bool aligned = reinterpret_cast<uintptr_t>(x.data) % 16 == 0 && (columns == 1 || x.dim == 1) && whole(rows, x.row) &&
                       whole(heads, x.head) && whole(p.batch, x.batch);
  return {static_cast<const uint16_t*>(x.data), x.batch, x.head, x.row, x.dim, static_cast<int>(columns), aligned};
}

BackwardArgs backward_args(const AttentionParams& p, const Keep& keep, const Lengths& lengths) {
  BackwardArgs a{};
  a.q = q_of(p), a.k = k_of(p), a.v = v_of(p), a.dout = dout_of(p);
  a.problem = problem_of(p, keep, lengths);
  a.lse = row_values(p.lse), a.dlse = row_values(p.dlse);
  a.dq = fused::rows_of(p.dq), a.dk = fused::rows_of(p.dk), a.dv = fused::rows_of(p.dv);
  a.dq_scale = p.softmax_scale;
  a.dk_scale = std::abs(p.softmax_scale);
  return a;
}

void blank_forward(const AttentionParams& p, const Lengths& lengths, float value) {
  if (!lengths.given()) return;
  blank(p, p.out, true, p.head_dim_v, lengths, 0.0F);
  blank(p, p.lse, true, 1, lengths, value);
}
void blank_backward(const AttentionParams& p, const Lengths& lengths) {
  if (!lengths.given()) return;
  blank(p, p.dq, true, p.head_dim, lengths, 0.0F);
  blank(p, p.dk, false, p.head_dim, lengths, 0.0F);
  blank(p, p.dv, false, p.head_dim_v, lengths, 0.0F);
}

}  // namespace attest::portable
