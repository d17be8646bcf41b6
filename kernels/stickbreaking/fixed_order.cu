// stickbreaking.cuda.fixed_order: the deterministic baseline of stick-breaking attention. Forward: logits; the walk from the
// nearest key to the farthest; out. Backward: dP; the walk back; dq; dk; dv. Logits and weights are materialised in fp32.
// Unusual: no matrix unit, no FMA, no atomics; every sum and product has one owner and the order that
// kernels/stickbreaking/README.md writes down, so its bits are those of the host twin stickbreaking.cpu.fixed_order.
#include "kernels/device/launch.h"
#include "kernels/device/launch_products.h"
#include "kernels/stickbreaking/fixed_order.h"
#include "kernels/stickbreaking/fixed_order_rows.h"

namespace attest::fixed_order {
namespace {

__global__ void __launch_bounds__(kThreads) stick_rows_kernel(const __grid_constant__ AttentionParams p) {
  __shared__ SticksTile tile;
  DeviceBlock<NoState> block;
  for (int64_t index = blockIdx.x; index < stick_blocks(p); index += gridDim.x) stick_rows(block, p, tile, index);
}

__global__ void __launch_bounds__(kThreads) stick_rows_backward_kernel(const __grid_constant__ AttentionParams p) {
  __shared__ SticksTile tile;
  DeviceBlock<NoState> block;
  for (int64_t index = blockIdx.x; index < stick_blocks(p); index += gridDim.x) stick_rows_backward(block, p, tile, index);
}

}  // namespace

void launch_stickbreaking(const AttentionParams& p) {
  const CudaDevice device(p.device);
  const auto stream = static_cast<cudaStream_t>(p.stream);
  const unsigned blocks = grid_of(stick_blocks(p));
  launch_logits(p);
  stick_rows_kernel<<<blocks, kThreads, 0, stream>>>(p);
  check_launch("stick_rows");
  launch_out(p);
  if (!p.backward()) return;
  launch_dweights(p);
  stick_rows_backward_kernel<<<blocks, kThreads, 0, stream>>>(p);
  check_launch("stick_rows_backward");
  launch_dq(p);
  launch_dk(p);
  launch_dv(p);
}

}  // namespace attest::fixed_order
