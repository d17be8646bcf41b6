// The host side of softmax.cuda.mma_sync: the workspace, the launches.
#include <cmath>

#include "kernels/ampere/host.h"
#include "kernels/ampere/softmax.h"
#include "kernels/device/launch.h"

namespace attest::portable::softmax {
namespace {

/// The mask's bits; three values a query for the backward.
struct Workspace {
  fused::Arena arena;
  Keep keep;
  QueryValues values{};

  Workspace(const AttentionParams& p, void* memory) : arena(memory), keep(take_keep(p, arena)) {
    if (!p.backward()) return;
    for (float** x : {&values.lse2, &values.reference, &values.shift}) *x = arena.take<float>(p.num_rows());
  }
};

void check(const AttentionParams& p) {
  if (const auto reason = unsupported_reason(p)) throw LaunchError("softmax.cuda.mma_sync: " + *reason);
}

}  // namespace

std::optional<std::string> unsupported_reason(const AttentionParams& p) { return portable::unsupported_reason(p); }
int64_t workspace_bytes(const AttentionParams& p) { return Workspace(p, nullptr).arena.used(); }

void forward(const AttentionParams& p, int32_t* dominant, void* memory, const Lengths& lengths) {
  check(p);
  const CudaDevice device(p.device);
  const Workspace w(p, memory);
  pack_keep(p, w.keep);
  blank_forward(p, lengths, -INFINITY);
  ForwardArgs a{};
  a.q = q_of(p), a.k = k_of(p), a.v = v_of(p);
  a.problem = problem_of(p, w.keep, lengths);
  a.out = fused::rows_of(p.out);
  a.lse = p.lse.data;
  a.lse_strides = fused::strides_of(p.lse.batch, p.lse.head, p.lse.row);
  a.dominant = dominant;
  a.chunks = chunks_of(p.head_dim_v);
  launch_softmax_forward(p, a);
}

void backward(const AttentionParams& p, const int32_t* dominant, void* memory, const Lengths& lengths) {
  check(p);
  const CudaDevice device(p.device);
  const Workspace w(p, memory);
  pack_keep(p, w.keep);
  blank_backward(p, lengths);
  BackwardArgs a = backward_args(p, w.keep, lengths);
  a.values = w.values;
  const View<const void> out{p.out.data, p.out.batch, p.out.head, p.out.row, p.out.dim};
  launch_softmax_values(p, {a.v, a.dout, out, a.lse, a.dlse, dominant, a.problem, a.values});
  a.chunks = chunks_of(p.head_dim);
  launch_softmax_dq(p, a);
  a.chunks = chunks_of(std::max(p.head_dim, p.head_dim_v));
  launch_softmax_dkv(p, a);
}

}  // namespace attest::portable::softmax
