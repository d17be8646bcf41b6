// The host side of stickbreaking.cuda.fused: what is supported, the workspace, the launches.
#include "kernels/hopper/fused_operands.h"
#include "kernels/hopper/host_launch.h"
#include "kernels/hopper/stick_backward.h"
#include "kernels/hopper/stick_host.h"
#include "kernels/hopper/stick_saved.h"

namespace attest::stick {
namespace {

using fused::Arena;
using fused::interleaved_map;
using fused::Operands;
using fused::rows_of;
using fused::strides_of;
using fused::tensor_map;
using fused::work_of;

constexpr int kCounters = 64;      // of which three are used: forward, dq, dk and dv
constexpr int64_t kKeyRows = 8;    // what interleaved maps ask for

struct Sizes {
  int64_t padded_rows, tiles, sticks, blocks;
  explicit Sizes(const AttentionParams& p)
      : padded_rows((p.seqlen_q + 127) / 128 * 128),
        tiles((p.seqlen_kv + 127) / 128 * 2),
        sticks(saved_sticks(p.batch * p.num_heads_q, p.seqlen_q, p.seqlen_kv)),
        blocks(saved_blocks(p.batch * p.num_heads_q, p.seqlen_q)) {}
  bool fit() const { return sticks * 4 <= kMostSaved; }
};

/// What the forward leaves, from `arena`; F is not among it.
Saved take_saved(const AttentionParams& p, Arena& arena) {
  const Sizes n(p);
  Saved s{.padded_rows = static_cast<int>(n.padded_rows), .tiles = static_cast<int>(n.tiles)};
  s.stick = arena.take<float>(n.sticks);
  s.first_tile = arena.take<int>(n.blocks);
  return s;
}
Saved saved_in(const AttentionParams& p, void* memory) {
  if (memory == nullptr) return {};
  Arena arena(memory);
  return take_saved(p, arena);
}

/// The workspace: counters, copies of operands; F and, where the forward could not leave it, what it recomputes.
struct Workspace {
  Arena arena;
  unsigned* counters;  // of the forward, of dq, of dk and dv
  float* far = nullptr;
  Saved recomputed{};
  Operands operands;

  Workspace(const AttentionParams& p, void* memory, bool recompute) : arena(memory), counters(arena.take<unsigned>(kCounters)) {
    if (p.backward()) far = arena.take<float>(Sizes(p).sticks);
    if (recompute) recomputed = take_saved(p, arena);
    operands = fused::prepare_operands(p, arena, kKeyRows);
  }
};

/// Batch elements and KV heads of a problem, as a problem.
AttentionParams part_of(AttentionParams p, int64_t batch, int64_t batches, int64_t kv_head, int64_t kv_heads) {
  const int64_t head = kv_head * p.group();
  p.num_heads_q = kv_heads * p.group();
  p.num_heads_kv = kv_heads;
  p.batch = batches;
  const auto move = [&](auto& x, int64_t h, int64_t bytes) {
    using Pointer = decltype(x.data);
    if (x.data != nullptr) x.data = reinterpret_cast<Pointer>(reinterpret_cast<uintptr_t>(x.data) + bytes * x.at(batch, h, 0));
  };
  move(p.q, head, 2), move(p.dout, head, 2), move(p.out, head, 2), move(p.dq, head, 2);
  move(p.k, kv_head, 2), move(p.v, kv_head, 2), move(p.dk, kv_head, 2), move(p.dv, kv_head, 2);
  move(p.lse, head, 4), move(p.dlse, head, 4);
  if (p.keep != nullptr) p.keep += batch * p.keep_batch;
  return p;
}

/// How many batch elements and KV heads the backward takes at once, so that what is saved fits.
struct Step {
  int64_t batches, kv_heads;
};
Step step_of(const AttentionParams& p) {
  const int64_t of_head = Sizes(p).sticks * 4 / (p.batch * p.num_heads_kv), fit = std::max<int64_t>(1, kMostSaved / of_head);
  return fit >= p.num_heads_kv ? Step{std::min(p.batch, fit / p.num_heads_kv), p.num_heads_kv} : Step{1, fit};
}

void check(const AttentionParams& p) {
  if (const auto reason = unsupported_reason(p)) throw LaunchError("stickbreaking.cuda.fused: " + *reason);
}

}  // namespace

std::optional<std::string> unsupported_reason(const AttentionParams& p) {
  const auto text = [](const char* what, int64_t n, const char* rest) { return std::string(what) + std::to_string(n) + rest; };
  if (p.type == ElementType::kFloat32) return "fp32 inputs: only fp16 and bf16 are supported";
  if (p.head_dim > 128) return text("head_dim ", p.head_dim, " is larger than 128");
  if (p.head_dim_v > 128) return text("head_dim_v ", p.head_dim_v, " is larger than 128");
  if (p.num_heads_q % p.num_heads_kv != 0) return text("num_heads_q is not a multiple of num_heads_kv ", p.num_heads_kv, "");
  if (p.seqlen_kv < 1 || p.head_dim < 1 || p.head_dim_v < 1) return "there is no key";
  if (std::max(p.seqlen_q, p.seqlen_kv) > (int64_t{1} << 30)) return "sequences are longer than 2^30";
  if (p.batch * p.num_heads_q * ((p.seqlen_q + 63) / 64) > (int64_t{1} << 30)) return "more than 2^30 blocks of queries";
  if (p.backward() && Sizes(p).sticks * 4 / (p.batch * p.num_heads_kv) > kMostSaved)
    return "the backward needs more than 512 MiB for the sticks of one KV head";
  const int capability = 10 * fused::attribute(cudaDevAttrComputeCapabilityMajor, p.device) +
                         fused::attribute(cudaDevAttrComputeCapabilityMinor, p.device);
  if (capability != 90) return text("a device of compute capability ", capability, " (tenfold): these kernels are for 9.0");
  return std::nullopt;
}

int64_t workspace_bytes(const AttentionParams& p) {
  const auto bytes = [](const AttentionParams& x, bool recompute) { return Workspace(x, nullptr, recompute).arena.used(); };
  AttentionParams forward_alone = p;
  forward_alone.dout = {};
  if (!p.backward()) return bytes(p, false);
  const Step step = step_of(p);
  return std::max(bytes(forward_alone, false), bytes(part_of(p, 0, step.batches, 0, step.kv_heads), !Sizes(p).fit()));
}

void clear_workspace(const AttentionParams& p, void* workspace) {
  const CudaDevice device(p.device);
  check_cuda(cudaMemsetAsync(workspace, 0, kCounters * sizeof(unsigned), static_cast<cudaStream_t>(p.stream)), "cudaMemsetAsync");
}

int64_t saved_bytes(const AttentionParams& p) {
  return saved_bytes_of(p.batch * p.num_heads_q, p.seqlen_q, p.seqlen_kv);
}

namespace {

void launch_forward(const AttentionParams& p, const Workspace& w, const Saved& saved, bool with_out, const Kernels& kernels) {
  const Operands& x = w.operands;
  const int padded = padded_head_dim(p);
  const KernelInfo kernel = kernels.forward(p.type, padded);
  fused::launch(kernel, p,
                ForwardArgs{.q = tensor_map(p, {x.q, p.num_heads_q, p.seqlen_q, p.head_dim}, kernel.rows),
                            .k = interleaved_map(p, {x.k, p.num_heads_kv, p.seqlen_kv, p.head_dim}, 4),
                            .v = interleaved_map(p, {x.v, p.num_heads_kv, p.seqlen_kv, p.head_dim_v}, 4),
                            .problem = problem_of(p, x),
                            .work = work_of(p, padded, p.num_heads_q, p.group(), p.seqlen_q, kernel.rows, true, w.counters),
                            .out = with_out ? rows_of(p.out) : Rows{},
                            .rem = p.lse.data,
                            .rem_strides = strides_of(p.lse.batch, p.lse.head, p.lse.row),
                            .saved = saved});
}

/// What the kernels of dq and of dk and dv share; maps of queries, and work, are theirs.
BackwardArgs backward_args(const AttentionParams& p, const Workspace& w, const Saved& saved) {
  const Operands& x = w.operands;
  BackwardArgs a{};
  a.k = interleaved_map(p, {x.k, p.num_heads_kv, p.seqlen_kv, p.head_dim}, 8);
  a.v = interleaved_map(p, {x.v, p.num_heads_kv, p.seqlen_kv, p.head_dim_v}, 8);
  a.problem = problem_of(p, x);
  a.saved = saved;
  a.saved.far = w.far;
  a.rem = {p.lse.data, strides_of(p.lse.batch, p.lse.head, p.lse.row)};
  a.drem = {p.dlse.data, strides_of(p.dlse.batch, p.dlse.head, p.dlse.row)};
  a.dq = rows_of(p.dq), a.dk = rows_of(p.dk), a.dv = rows_of(p.dv);
  a.dq_scale = p.softmax_scale;
  a.dk_scale = std::abs(p.softmax_scale);
  return a;
}

void map_queries(const AttentionParams& p, const Workspace& w, int rows, BackwardArgs& a) {
  a.q = tensor_map(p, {w.operands.q, p.num_heads_q, p.seqlen_q, p.head_dim}, rows);
  a.dout = tensor_map(p, {w.operands.dout, p.num_heads_q, p.seqlen_q, p.head_dim_v}, rows);
}

/// One part, whose sticks fit.
void launch_backward(const AttentionParams& p, void* saved, void* memory, const Kernels& kernels) {
  const Workspace w(p, memory, saved == nullptr);
  const Saved from = saved == nullptr ? w.recomputed : saved_in(p, saved);
  if (saved == nullptr) launch_forward(p, w, from, false, kernels);
  const int padded = padded_head_dim(p);
  const KernelInfo dq = kernels.dq(p.type, padded), dkv = kernels.dkv(p.type, padded);
  BackwardArgs a = backward_args(p, w, from);
  map_queries(p, w, dq.rows, a);
  a.work = work_of(p, padded, p.num_heads_q, p.group(), p.seqlen_q, dq.rows, true, w.counters + 1);
  fused::launch(dq, p, a);
  map_queries(p, w, kSavedTile, a);
  a.work = work_of(p, padded, p.num_heads_kv, 1, p.seqlen_kv, dkv.rows, false, w.counters + 2);
  fused::launch(dkv, p, a);
}

}  // namespace

void forward(const AttentionParams& p, void* saved, void* memory) { forward(p, saved, memory, Kernels{}); }
void forward(const AttentionParams& p, void* saved, void* memory, const Kernels& kernels) {
  check(p);
  const CudaDevice device(p.device);
  AttentionParams alone = p;
  alone.dout = {};
  const Workspace workspace(alone, memory, false);
  launch_forward(p, workspace, saved_in(p, saved), true, kernels);
}

void backward(const AttentionParams& p, void* saved, void* memory) { backward(p, saved, memory, Kernels{}); }
void backward(const AttentionParams& p, void* saved, void* memory, const Kernels& kernels) {
  check(p);
  const CudaDevice device(p.device);
  if (saved != nullptr) return launch_backward(p, saved, memory, kernels);
  if (Sizes(p).fit()) throw LaunchError("stickbreaking.cuda.fused: the backward needs what the forward has saved");
  const Step step = step_of(p);
  for (int64_t b = 0; b < p.batch; b += step.batches)
    for (int64_t h = 0; h < p.num_heads_kv; h += step.kv_heads)
      launch_backward(part_of(p, b, std::min(step.batches, p.batch - b), h, std::min(step.kv_heads, p.num_heads_kv - h)), nullptr,
                      memory, kernels);
}

}  // namespace attest::stick
