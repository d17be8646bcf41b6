// softmax.cuda.fused: the record of the kernels in fused_*.cu, for Hopper. Unusual: nothing of size Sq × Skv is kept; the forward
// walks the keys from the nearest tile to the farthest, and the backward takes dP relative to the dominant key, or to dout·out,
// before it subtracts. One owner and one order for every sum, in kernels/hopper/README.md. It promises every law of the
// forward; none of the gradients yet, since generated cases break some (README.md, "Open").
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "kernels/device/attention_tensors.h"
#include "kernels/hopper/fused.h"

namespace attest {
namespace {

fixed_order::AttentionParams params_on_device(const Inputs& in, const Outputs& out) {
  fixed_order::AttentionParams p = fixed_order::params_of(in, out);
  p.device = in.q.device().index();
  p.stream = c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).getStream(in.q.device()).native_handle();
  return p;
}

Outputs run(const Inputs& in) {
  const c10::DeviceGuard guard(in.q.device());
  const Outputs out = fixed_order::fresh_outputs(in, Device::kCuda);
  const fixed_order::AttentionParams p = params_on_device(in, out);
  const at::Tensor workspace = at::empty({fused::workspace_bytes(p)}, in.q.options().dtype(at::kByte));
  const at::Tensor dominant = in.backward() ? at::empty({p.num_rows()}, in.q.options().dtype(at::kInt)) : at::Tensor();
  int32_t* const keys = in.backward() ? dominant.data_ptr<int32_t>() : nullptr;
  fused::clear_workspace(p, workspace.data_ptr());
  fused::forward(p, keys, workspace.data_ptr());
  if (in.backward()) fused::backward(p, keys, workspace.data_ptr());
  return out;
}

std::optional<std::string> refuses(const Inputs& in) {
  if (!in.q.is_cuda()) return std::nullopt;
  return fused::unsupported_reason(params_on_device(in, {}));
}

std::set<std::string> forward_promises() {
  std::set<std::string> promises = fixed_order::every_promise();
  std::erase_if(promises, [](const std::string& law) { return law != "returns" && !law.ends_with(".forward"); });
  return promises;
}

ToleranceContract contract() {
  return {.tolerance = forward_error(2),
          .arithmetic = {.accumulate = Arithmetic::Accumulate::kMatrixUnit,
                         .operands_rounded = true,
                         .p_in_fp16_unscaled = true,
                         .p_from_lse = true},
          .reason =
              "weights and dz are rounded to the input dtype before a matrix product, whose sums are fp32; the sum that dz "
              "subtracts is fp32 throughout, relative to the dominant key's dP, so that saturated gradients keep their digits"};
}

const Register<KernelVariant> registered{{
    .name = "softmax.cuda.fused",
    .op = Op::kSoftmax,
    .device = Device::kCuda,
    .summary = "Hopper matrix units, no logits in memory, batch-invariant, forward and backward",
    .domain = {.ops = {Op::kSoftmax},
               .dtypes = {Dtype::kFloat16, Dtype::kBFloat16},
               .head_dim = {1, 128},
               .head_dim_v = {1, 128},
               .equal_head_dims = true},
    .contract = contract(),
    .promises = forward_promises(),
    .refuses = refuses,
    .run = run,
}};

}  // namespace
}  // namespace attest
