// softmax.cuda.fixed_order: the record of the kernels in fixed_order.cu. Unusual: slow and exact in its order, with fp32 logits
// and probabilities held in memory; its bits equal those of the host twin softmax.cpu.fixed_order. It promises every law.
#include "kernels/device/cuda_run.h"
#include "kernels/softmax/fixed_order.h"

namespace attest {
namespace {

Outputs run(const Inputs& in) { return fixed_order::run_on_cuda(in, {.separate_logits = false}, fixed_order::launch_softmax); }

const Register<KernelVariant> registered{{
    .name = "softmax.cuda.fixed_order",
    .op = Op::kSoftmax,
    .device = Device::kCuda,
    .summary = "deterministic baseline: three kernels forward, five backward, fp32 logits in memory, one owner and order per sum",
    .domain = fixed_order::fixed_order_cuda_domain(Op::kSoftmax),
    .contract = fixed_order::fixed_order_contract(),
    .promises = fixed_order::every_promise_and_a_twin(),
    .run = run,
}};

}  // namespace
}  // namespace attest
