#include "kernels/device/cuda_run.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace attest::fixed_order {

AttentionParams params_on_device(const Inputs& in, const Outputs& out) {
  AttentionParams p = params_of(in, out);
  p.device = in.q.device().index();
  p.stream = c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).getStream(in.q.device()).native_handle();
  return p;
}

Outputs run_on_cuda(const Inputs& in, Workspace workspace, const std::function<void(const AttentionParams&)>& launch) {
  const c10::DeviceGuard guard(in.q.device());
  const Outputs out = fresh_outputs(in, Device::kCuda);
  AttentionParams p = params_on_device(in, out);
  const bool separate = workspace.separate_logits && in.backward();
  const int64_t matrices = 1 + (in.backward() ? 1 : 0) + (separate ? 1 : 0);
  const at::Tensor memory = at::empty({matrices, p.num_rows(), p.seqlen_kv}, in.q.options().dtype(at::kFloat));
  const int64_t size = p.num_rows() * p.seqlen_kv;
  p.weights = memory.data_ptr<float>();
  p.dlogits = in.backward() ? p.weights + size : nullptr;
  p.logits = separate ? p.dlogits + size : p.weights;
  launch(p);
  return out;
}

CaseDomain fixed_order_cuda_domain(Op op) {
  return {.ops = {op}, .dtypes = {Dtype::kFloat16, Dtype::kBFloat16}, .head_dim = {1, 256}, .head_dim_v = {1, 256}};
}

}  // namespace attest::fixed_order
