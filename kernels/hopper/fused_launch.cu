// The host side of softmax.cuda.fused: what is supported, the workspace, the order of work, the launches.
#include "kernels/hopper/fused_backward.h"
#include "kernels/hopper/fused_decode.h"
#include "kernels/hopper/fused_operands.h"
#include "kernels/hopper/fused_plan.h"

namespace attest::fused {
namespace {

constexpr int kCounters = 64;      // of which three are used: forward, dq, dk and dv

Problem problem_of(const AttentionParams& p, const Operands& operands) {
  // q holds the sign; a scale of 0 has made q zero. The floor keeps −∞ · scale = −∞ where the scale is a subnormal.
  const float scale = p.softmax_scale == 0.0F ? 1.0F : std::abs(p.softmax_scale);
  return {.batch = static_cast<int>(p.batch),
          .heads = static_cast<int>(p.num_heads_q),
          .group = static_cast<int>(p.group()),
          .seqlen_q = static_cast<int>(p.seqlen_q),
          .seqlen_kv = static_cast<int>(p.seqlen_kv),
          .head_dim = static_cast<int>(p.head_dim),
          .causal = p.causal,
          .logit_scale = std::max(scale * kLog2E, std::numeric_limits<float>::min()),
          .keep = operands.keep,
          .keep_words = operands.keep_words};
}

ForwardPlan plan_of(const AttentionParams& p) { return forward_plan(p, split_kernel_of(p.type, padded_head_dim(p)).rows); }

/// The workspace: counters, what segments leave, values per query for the backward, copies of operands.
struct Workspace {
  Arena arena;
  unsigned* counters;  // of the forward, of dq, of dk and dv
  ForwardPlan plan;
  Partials partials{};
  RowValues rows{};
  Operands operands;

  Workspace(const AttentionParams& p, void* memory)
      : arena(memory), counters(arena.take<unsigned>(kCounters)), plan(plan_of(p)) {
    if (plan.path != ForwardPlan::Path::kWhole) take_partials(p);
    if (p.backward()) take_rows(p);
    operands = prepare_operands(p, arena);
  }
  void take_partials(const AttentionParams& p) {
    partials.segments = plan.segments;
    partials.pitch = static_cast<int>((p.head_dim + 7) / 8 * 8);
    partials.o = arena.take<float>(p.num_rows() * plan.segments * partials.pitch);
    partials.sums = arena.take<float2>(p.num_rows() * plan.segments);
  }
  void take_rows(const AttentionParams& p) {
    rows.padded_rows = static_cast<int>((p.seqlen_q + 127) / 128 * 128);
    const int64_t count = p.batch * p.num_heads_q * rows.padded_rows;
    for (float** x : {&rows.lse2, &rows.reference, &rows.shift}) *x = arena.take<float>(count);
  }
};

void check(const AttentionParams& p) {
  if (const auto reason = unsupported_reason(p)) throw LaunchError("softmax.cuda.fused: " + *reason);
}

RowsArgs rows_args(const AttentionParams& p, const int32_t* dominant, const Workspace& w) {
  return {w.operands.v, w.operands.dout, p.out, p.lse, p.dlse, dominant, problem_of(p, w.operands), w.rows};
}

/// What the kernels of dq and of dk and dv share; maps and work are theirs.
BackwardArgs backward_args(const AttentionParams& p, const Workspace& w) {
  BackwardArgs a{};
  a.problem = problem_of(p, w.operands);
  a.rows = w.rows;
  a.dq = rows_of(p.dq), a.dk = rows_of(p.dk), a.dv = rows_of(p.dv);
  a.dq_scale = p.softmax_scale;
  a.dk_scale = std::abs(p.softmax_scale);
  return a;
}

ForwardArgs forward_args(const AttentionParams& p, const Workspace& w, int block_rows, int ranges = 1) {
  const Operands& x = w.operands;
  ForwardArgs a{};
  a.q = tensor_map(p, {x.q, p.num_heads_q, p.seqlen_q, p.head_dim}, block_rows);
  a.k = tensor_map(p, {x.k, p.num_heads_kv, p.seqlen_kv, p.head_dim}, kKeyTile);
  a.v = tensor_map(p, {x.v, p.num_heads_kv, p.seqlen_kv, p.head_dim}, kKeyTile);
  a.problem = problem_of(p, x);
  a.work = work_of(p, padded_head_dim(p), p.num_heads_q, p.group(), p.seqlen_q, block_rows, true, w.counters, ranges);
  return a;
}

void launch_whole(const KernelInfo& kernel, const AttentionParams& p, const Workspace& w, int32_t* dominant) {
  ForwardArgs a = forward_args(p, w, kernel.rows);
  a.out = rows_of(p.out);
  a.lse = p.lse.data;
  a.lse_strides = strides_of(p.lse.batch, p.lse.head, p.lse.row);
  a.dominant = dominant;
  launch(kernel, p, a);
}

void launch_split(const KernelInfo& kernel, const AttentionParams& p, const Workspace& w) {
  const int ranges = (w.plan.segments + w.plan.range_segments - 1) / w.plan.range_segments;
  ForwardArgs a = forward_args(p, w, kernel.rows, ranges);
  a.ranges = ranges;
  a.range_tiles = w.plan.range_segments * kSegmentTiles;
  a.partials = w.partials;
  launch(kernel, p, a);
}

void launch_decode(const KernelInfo& kernel, const AttentionParams& p, const Workspace& w) {
  constexpr auto kPieces = CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
  const Operands& x = w.operands;
  DecodeArgs a{};
  a.k = tensor_map(p, {x.k, p.num_heads_kv, p.seqlen_kv, p.head_dim}, kKeyTile, kPieces);
  a.v = tensor_map(p, {x.v, p.num_heads_kv, p.seqlen_kv, p.head_dim}, kKeyTile, kPieces);
  a.q = static_cast<const uint16_t*>(x.q.data);
  a.q_strides = strides_of(x.q.batch, x.q.head, x.q.row);
  a.problem = problem_of(p, x);
  a.partials = w.partials;
  a.row_tiles = static_cast<int>((p.seqlen_q * p.group() + kernel.rows - 1) / kernel.rows);
  a.count = static_cast<int>(p.batch * p.num_heads_kv * a.row_tiles * w.plan.segments);
  launch(kernel, p, a, a.count);
}

/// `block_rows`: queries that were worked together.
CombineArgs combine_args(const AttentionParams& p, const Workspace& w, int block_rows) {
  return {.problem = problem_of(p, w.operands),
          .partials = w.partials,
          .block_rows = block_rows,
          .range_tiles = w.plan.range_segments * kSegmentTiles,
          .out = rows_of(p.out),
          .lse = p.lse.data,
          .lse_strides = strides_of(p.lse.batch, p.lse.head, p.lse.row)};
}

void launch_forward(const AttentionParams& p, const Workspace& w, int32_t* dominant) {
  const int dim = padded_head_dim(p);
  if (w.plan.path == ForwardPlan::Path::kWhole || dominant != nullptr)
    return launch_whole(forward_kernel_of(p.type, dim), p, w, dominant);
  const bool decode = w.plan.path == ForwardPlan::Path::kDecode;
  const KernelInfo kernel = decode ? decode_kernel_of(p.type, dim) : split_kernel_of(p.type, dim);
  decode ? launch_decode(kernel, p, w) : launch_split(kernel, p, w);
  launch_combine(p, combine_args(p, w, decode ? 1 : kernel.rows));
}

void launch_dq(const KernelInfo& kernel, const AttentionParams& p, const Workspace& w, BackwardArgs a) {
  const Operands& x = w.operands;
  a.q = tensor_map(p, {x.q, p.num_heads_q, p.seqlen_q, p.head_dim}, kernel.rows);
  a.dout = tensor_map(p, {x.dout, p.num_heads_q, p.seqlen_q, p.head_dim}, kernel.rows);
  a.k = tensor_map(p, {x.k, p.num_heads_kv, p.seqlen_kv, p.head_dim}, kDqKeyTile);
  a.v = tensor_map(p, {x.v, p.num_heads_kv, p.seqlen_kv, p.head_dim}, kDqKeyTile);
  a.work = work_of(p, padded_head_dim(p), p.num_heads_q, p.group(), p.seqlen_q, kernel.rows, true, w.counters + 1);
  launch(kernel, p, a);
}

void launch_dkv(const KernelInfo& kernel, const AttentionParams& p, const Workspace& w, BackwardArgs a) {
  const Operands& x = w.operands;
  a.q = tensor_map(p, {x.q, p.num_heads_q, p.seqlen_q, p.head_dim}, kQueryTile);
  a.dout = tensor_map(p, {x.dout, p.num_heads_q, p.seqlen_q, p.head_dim}, kQueryTile);
  a.k = tensor_map(p, {x.k, p.num_heads_kv, p.seqlen_kv, p.head_dim}, kernel.rows);
  a.v = tensor_map(p, {x.v, p.num_heads_kv, p.seqlen_kv, p.head_dim}, kernel.rows);
  a.work = work_of(p, padded_head_dim(p), p.num_heads_kv, 1, p.seqlen_kv, kernel.rows, false, w.counters + 2);
  launch(kernel, p, a);
}

}  // namespace

std::optional<std::string> unsupported_reason(const AttentionParams& p) {
  const auto text = [](const char* what, int64_t n, const char* rest) { return std::string(what) + std::to_string(n) + rest; };
  if (p.type == ElementType::kFloat32) return "fp32 inputs: only fp16 and bf16 are supported";
  if (p.head_dim > 128) return text("head_dim ", p.head_dim, " is larger than 128");
  if (p.head_dim != p.head_dim_v) return text("head_dim_v ", p.head_dim_v, " differs from head_dim");
  if (p.num_heads_q % p.num_heads_kv != 0) return text("num_heads_q is not a multiple of num_heads_kv ", p.num_heads_kv, "");
  if (p.seqlen_kv < 1 || p.head_dim < 1) return "there is no key";
  if (std::max(p.seqlen_q, p.seqlen_kv) > (int64_t{1} << 30)) return "sequences are longer than 2^30";
  if (p.batch * p.num_heads_q * ((p.seqlen_q + 63) / 64) > (int64_t{1} << 30)) return "more than 2^30 blocks of queries";
  const int capability =
      10 * attribute(cudaDevAttrComputeCapabilityMajor, p.device) + attribute(cudaDevAttrComputeCapabilityMinor, p.device);
  if (capability != 90) return text("a device of compute capability ", capability, " (tenfold): these kernels are for 9.0");
  return std::nullopt;
}

int64_t workspace_bytes(const AttentionParams& p) { return Workspace(p, nullptr).arena.used(); }

bool needs_cleared_workspace(const AttentionParams& p) { return plan_of(p).path != ForwardPlan::Path::kDecode; }

void clear_workspace(const AttentionParams& p, void* workspace) {
  const CudaDevice device(p.device);
  check_cuda(cudaMemsetAsync(workspace, 0, kCounters * sizeof(unsigned), static_cast<cudaStream_t>(p.stream)), "cudaMemsetAsync");
}

void forward(const AttentionParams& p, int32_t* dominant, void* memory) {
  check(p);
  const CudaDevice device(p.device);
  launch_forward(p, Workspace(p, memory), dominant);
}
void forward(const AttentionParams& p, int32_t* dominant, void* memory, const Kernels& kernels) {
  check(p);
  const CudaDevice device(p.device);
  launch_whole(kernels.forward(p.type, padded_head_dim(p)), p, Workspace(p, memory), dominant);
}

void backward(const AttentionParams& p, const int32_t* dominant, void* memory) { backward(p, dominant, memory, Kernels{}); }
void backward(const AttentionParams& p, const int32_t* dominant, void* memory, const Kernels& kernels) {
  check(p);
  const CudaDevice device(p.device);
  const Workspace workspace(p, memory);
  kernels.rows(p, rows_args(p, dominant, workspace));
  const BackwardArgs args = backward_args(p, workspace);
  launch_dq(kernels.dq(p.type, padded_head_dim(p)), p, workspace, args);
  launch_dkv(kernels.dkv(p.type, padded_head_dim(p)), p, workspace, args);
}

}  // namespace attest::fused
