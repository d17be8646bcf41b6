// The host side of stickbreaking.cuda.mma_sync: the workspace, what is saved, the launches.
#include "kernels/ampere/host.h"
#include "kernels/ampere/stick.h"
#include "kernels/device/launch.h"

namespace attest::portable::stick {
namespace {

int64_t key_tiles(const AttentionParams& p) { return (p.seqlen_kv + 127) / 128 * 2; }

struct Saved {
  fused::Arena arena;
  float* sticks;
  int* first_tile;
  Saved(const AttentionParams& p, void* memory)
      : arena(memory), sticks(arena.take<float>(p.num_rows() * key_tiles(p))), first_tile(arena.take<int>(p.num_rows())) {}
};

/// The mask's bits; F for the backward.
struct Workspace {
  fused::Arena arena;
  Keep keep;
  float* far;
  Workspace(const AttentionParams& p, void* memory)
      : arena(memory), keep(take_keep(p, arena)), far(p.backward() ? arena.take<float>(p.num_rows() * key_tiles(p)) : nullptr) {}
};

void check(const AttentionParams& p) {
  if (const auto reason = unsupported_reason(p)) throw LaunchError("stickbreaking.cuda.mma_sync: " + *reason);
}

}  // namespace

std::optional<std::string> unsupported_reason(const AttentionParams& p) {
  if (auto reason = portable::unsupported_reason(p)) return reason;
  const int64_t needed = (k_of(p).slabs() + v_of(p).slabs() + 6) * kSlabBytes + 1024;  // of the kernel of dk and dv
  const int64_t there = fused::attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, p.device);
  if (!p.backward() || needed <= there) return std::nullopt;
  return "gradients of these head dims need " + std::to_string(needed) + " bytes of shared memory, the device has " + std::to_string(there);
}
int64_t workspace_bytes(const AttentionParams& p) { return Workspace(p, nullptr).arena.used(); }
int64_t saved_bytes(const AttentionParams& p) { return Saved(p, nullptr).arena.used(); }

void forward(const AttentionParams& p, void* memory_of_saved, void* memory, const Lengths& lengths) {
  check(p);
  const CudaDevice device(p.device);
  const Workspace w(p, memory);
  pack_keep(p, w.keep);
  blank_forward(p, lengths, 1.0F);
  ForwardArgs a{};
  a.q = q_of(p), a.k = k_of(p), a.v = v_of(p);
  a.problem = problem_of(p, w.keep, lengths);
  a.out = fused::rows_of(p.out);
  a.lse = p.lse.data;
  a.lse_strides = fused::strides_of(p.lse.batch, p.lse.head, p.lse.row);
  a.key_tiles = static_cast<int>(key_tiles(p));
  a.chunks = chunks_of(p.head_dim_v);
  if (memory_of_saved != nullptr) {
    const Saved saved(p, memory_of_saved);
    a.sticks = saved.sticks, a.first_tile = saved.first_tile;
  }
  launch_stick_forward(p, a);
}

void backward(const AttentionParams& p, void* memory_of_saved, void* memory, const Lengths& lengths) {
  check(p);
  const CudaDevice device(p.device);
  const Workspace w(p, memory);
  const Saved saved(p, memory_of_saved);
  pack_keep(p, w.keep);
  blank_backward(p, lengths);
  BackwardArgs a = backward_args(p, w.keep, lengths);
  a.sticks = saved.sticks, a.first_tile = saved.first_tile, a.far = w.far;
  a.key_tiles = static_cast<int>(key_tiles(p));
  a.chunks = chunks_of(p.head_dim);
  launch_stick_dq(p, a);
  a.chunks = chunks_of(std::max(p.head_dim, p.head_dim_v));
  launch_stick_dkv(p, a);
}

}  // namespace attest::portable::stick
