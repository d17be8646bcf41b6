// The host side of stickbreaking.cuda.decode: what is supported, the workspace, the launches.
#include "kernels/hopper/fused_operands.h"
#include "kernels/hopper/host_launch.h"
#include "kernels/hopper/stick_decode_kernels.h"
#include "kernels/hopper/stick_host.h"

namespace attest::stick {
namespace {

constexpr int64_t kSegment = kSegmentTiles * kKeyTile;

/// The kernels read the padding mask as it is, and no hidden row: neither needs copies.
AttentionParams without_mask(AttentionParams p) {
  p.keep = nullptr;
  return p;
}

/// What segments leave, and copies of operands.
struct Workspace {
  fused::Arena arena;
  Partials partials{};
  fused::Operands operands;

  Workspace(const AttentionParams& p, void* memory) : arena(memory) {
    partials.segments = static_cast<int>((p.seqlen_kv + kSegment - 1) / kSegment);
    partials.pitch = static_cast<int>((p.head_dim_v + 7) / 8 * 8);
    partials.o = arena.take<float>(p.num_rows() * partials.segments * partials.pitch);
    partials.stick = arena.take<float>(p.num_rows() * partials.segments);
    operands = fused::prepare_operands(without_mask(p), arena);
  }
};

/// Every fourth key of a tile at a time: what the accumulators' order of keys asks for.
CUtensorMap key_map(const AttentionParams& p, const View<const void>& x, int64_t head_dim) {
  return fused::every_fourth_map(p, {x, p.num_heads_kv, p.seqlen_kv, head_dim}, kKeyTile);
}

DecodeArgs decode_args(const AttentionParams& p, const DecodeLengths& lengths, const Workspace& w, int rows) {
  const fused::Operands& x = w.operands;
  DecodeArgs a{};
  a.k = key_map(p, x.k, p.head_dim);
  a.v = key_map(p, x.v, p.head_dim_v);
  a.q = static_cast<const uint16_t*>(x.q.data);
  a.q_strides = {x.q.batch, x.q.head, x.q.row};
  a.problem = problem_of(p, x);
  a.seqlens_kv = lengths.seqlens_kv;
  a.keep = {p.keep, p.keep_batch, p.keep_key};
  a.partials = w.partials;
  a.row_tiles = static_cast<int>((p.seqlen_q * p.group() + rows - 1) / rows);
  a.count = static_cast<int>(p.batch * p.num_heads_kv * a.row_tiles * w.partials.segments);
  return a;
}

}  // namespace

std::optional<std::string> decode_unsupported_reason(const AttentionParams& p) {
  if (p.backward()) return "gradients: this is a forward alone";
  if (p.seqlen_q > kMostDecodeQueries)
    return std::to_string(p.seqlen_q) + " queries a sequence: at most " + std::to_string(kMostDecodeQueries) + " are supported";
  if (auto reason = unsupported_reason(p)) return reason;
  const int64_t row_tiles = (p.seqlen_q * p.group() + 15) / 16, segments = (p.seqlen_kv + kSegment - 1) / kSegment;
  if (p.batch * p.num_heads_kv * row_tiles * segments > (int64_t{1} << 30)) return "more than 2^30 pieces of work";
  if (p.num_rows() > (int64_t{1} << 27)) return "more than 2^27 queries of all heads";
  return std::nullopt;
}

int64_t decode_workspace_bytes(const AttentionParams& p) { return Workspace(p, nullptr).arena.used(); }

void decode(const AttentionParams& p, const DecodeLengths& lengths, void* memory) {
  if (const auto reason = decode_unsupported_reason(p)) throw LaunchError("stickbreaking.cuda.decode: " + *reason);
  const CudaDevice device(p.device);
  if (p.num_rows() == 0) return;
  const Workspace workspace(p, memory);
  const KernelInfo kernel = decode_kernel_of(p.type, padded_head_dim(p));
  const DecodeArgs args = decode_args(p, lengths, workspace, kernel.rows);
  fused::launch(kernel, p, args, args.count);
  launch_combine(p, {.problem = args.problem,
                     .seqlens_kv = lengths.seqlens_kv,
                     .errors = lengths.errors,
                     .partials = workspace.partials,
                     .out = fused::rows_of(p.out),
                     .rem = p.lse.data,
                     .rem_strides = {p.lse.batch, p.lse.head, p.lse.row}});
}

}  // namespace attest::stick
