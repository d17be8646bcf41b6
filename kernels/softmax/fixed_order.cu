// softmax.cuda.fixed_order: the deterministic baseline of softmax attention. Forward: logits; masked softmax with lse, one block
// a row; out. Backward: dP; softmax backward, δ relative to the likeliest key; dq; dk; dv. Logits and probabilities are
// materialised in fp32. Unusual: no matrix unit, no FMA, no atomics; every sum has one owner and the order that
// kernels/softmax/README.md writes down, so its bits are those of the host twin softmax.cpu.fixed_order.
#include "kernels/device/launch.h"
#include "kernels/device/launch_products.h"
#include "kernels/softmax/fixed_order.h"
#include "kernels/softmax/fixed_order_rows.h"

namespace attest::fixed_order {
namespace {

__global__ void __launch_bounds__(kThreads) softmax_rows(const __grid_constant__ AttentionParams p) {
  __shared__ SoftmaxLeaves leaves;
  DeviceBlock<NoState> block;
  for (int64_t row = blockIdx.x; row < p.num_rows(); row += gridDim.x) softmax_row(block, p, leaves, row);
}

__global__ void __launch_bounds__(kThreads) softmax_rows_backward(const __grid_constant__ AttentionParams p) {
  __shared__ SoftmaxLeaves leaves;
  DeviceBlock<NoState> block;
  for (int64_t row = blockIdx.x; row < p.num_rows(); row += gridDim.x) softmax_row_backward(block, p, leaves, row);
}

}  // namespace

void launch_softmax(const AttentionParams& p) {
  const CudaDevice device(p.device);
  const auto stream = static_cast<cudaStream_t>(p.stream);
  const unsigned blocks = grid_of(p.num_rows());
  launch_logits(p);
  softmax_rows<<<blocks, kThreads, 0, stream>>>(p);
  check_launch("softmax_rows");
  launch_out(p);
  if (!p.backward()) return;
  launch_dweights(p);
  softmax_rows_backward<<<blocks, kThreads, 0, stream>>>(p);
  check_launch("softmax_rows_backward");
  launch_dq(p);
  launch_dk(p);
  launch_dv(p);
}

}  // namespace attest::fixed_order
