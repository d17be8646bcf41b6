// stickbreaking.cuda.fixed_order: the record of the kernels in fixed_order.cu. Unusual: slow and exact in its order, with fp32
// logits and weights held in memory; its bits equal those of the host twin stickbreaking.cpu.fixed_order. It promises every law.
#include "kernels/device/cuda_run.h"
#include "kernels/stickbreaking/fixed_order.h"

namespace attest {
namespace {

Outputs run(const Inputs& in) {
  return fixed_order::run_on_cuda(in, {.separate_logits = true}, fixed_order::launch_stickbreaking);
}

const Register<KernelVariant> registered{{
    .name = "stickbreaking.cuda.fixed_order",
    .op = Op::kStickBreaking,
    .device = Device::kCuda,
    .summary = "deterministic baseline: three kernels forward, five backward, fp32 logits in memory, one owner and order per sum",
    .domain = fixed_order::fixed_order_cuda_domain(Op::kStickBreaking),
    .contract = fixed_order::fixed_order_contract(),
    .promises = fixed_order::every_promise_and_a_twin(),
    .run = run,
}};

}  // namespace
}  // namespace attest
