// stickbreaking.cuda.decode: the record of the kernels in stick_decode.cu and stick_combine.cu, for few queries on many keys. Unusual:
// keys are worked in segments of 512 at once and put together in one order, so that a row has the bits of its row of
// stickbreaking.cuda.fused's prefill; keys and values are read where they lie, whatever a padding mask hides. It promises every
// law of a forward.
#include <c10/core/DeviceGuard.h>

#include "kernels/device/cuda_run.h"
#include "kernels/hopper/cuda_stick_fused.h"
#include "kernels/hopper/stick_decode.h"

namespace attest {
namespace {

Outputs run(const Inputs& in) {
  const c10::DeviceGuard guard(in.q.device());
  const Outputs out = fixed_order::fresh_outputs(in, Device::kCuda);
  const fixed_order::AttentionParams p = fixed_order::params_on_device(in, out);
  const at::Tensor workspace = at::empty({stick::decode_workspace_bytes(p)}, in.q.options().dtype(at::kByte));
  stick::decode(p, {}, workspace.data_ptr());
  return out;
}

std::optional<std::string> refuses(const Inputs& in) {
  if (!in.q.is_cuda()) return std::nullopt;
  return stick::decode_unsupported_reason(fixed_order::params_on_device(in.forward_only(), {}));
}

std::set<std::string> forward_promises() {
  std::set<std::string> names = fixed_order::every_promise();
  std::erase_if(names, [](const std::string& name) { return name != "returns" && !name.ends_with(".forward"); });
  return names;
}

const Register<KernelVariant> registered{{
    .name = "stickbreaking.cuda.decode",
    .op = Op::kStickBreaking,
    .device = Device::kCuda,
    .summary = "few queries on a KV cache, split over keys on Hopper; the bits of stickbreaking.cuda.fused",
    .domain = {.ops = {Op::kStickBreaking},
               .dtypes = {Dtype::kFloat16, Dtype::kBFloat16},
               .seqlen_q = {1, stick::kMostDecodeQueries},
               .head_dim = {1, 128},
               .head_dim_v = {1, 128}},
    .produces = {Quantity::kOut, Quantity::kLse},
    .contract = stick_contract(),
    .promises = forward_promises(),
    .refuses = refuses,
    .run = run,
}};

}  // namespace
}  // namespace attest
