// softmax.cuda.fused: the record of the kernels in fused_*.cu, for Hopper. Unusual: nothing of size Sq × Skv is kept; the forward
// walks the keys from the nearest tile to the farthest, and the backward takes dP relative to the dominant key, or to dout·out,
// before it subtracts. One owner and one order for every sum, in kernels/hopper/README.md. It promises every law.
#include <c10/core/DeviceGuard.h>

#include "kernels/device/cuda_run.h"
#include "kernels/hopper/cuda_fused.h"
#include "kernels/hopper/sequence_inputs.h"
#include "kernels/two_halves.h"

namespace attest {
namespace {

void attend(const fused::AttentionParams& p, int32_t* dominant, void* workspace) {
  fused::forward(p, dominant, workspace);
  if (p.backward()) fused::backward(p, dominant, workspace);
}

/// In place, whatever their kind.
Outputs run_sequences(const Inputs& in) {
  const Outputs out = fixed_order::fresh_outputs(in, Device::kCuda);
  const fixed_order::AttentionParams p = fixed_order::params_on_device(in, out);
  const fused::Sequences sequences = fused::sequences_of(in);
  const at::Tensor workspace = at::empty({fused::workspace_bytes(p, sequences)}, in.q.options().dtype(at::kByte));
  const at::Tensor dominant = in.backward() ? at::empty({p.num_rows()}, in.q.options().dtype(at::kInt)) : at::Tensor();
  int32_t* const keys = in.backward() ? dominant.data_ptr<int32_t>() : nullptr;
  fused::clear_workspace(p, workspace.data_ptr());
  fused::forward(p, sequences, keys, workspace.data_ptr());
  if (in.backward()) fused::backward(p, sequences, keys, workspace.data_ptr());
  return out;
}

Outputs run(const Inputs& in, Attend* launch) {
  const c10::DeviceGuard guard(in.q.device());
  if (in.kind != Sequences::kWhole) return run_sequences(in);
  const Outputs out = fixed_order::fresh_outputs(in, Device::kCuda);
  const fixed_order::AttentionParams p = fixed_order::params_on_device(in, out);
  const at::Tensor workspace = at::empty({fused::workspace_bytes(p)}, in.q.options().dtype(at::kByte));
  const at::Tensor dominant = in.backward() ? at::empty({p.num_rows()}, in.q.options().dtype(at::kInt)) : at::Tensor();
  int32_t* const keys = in.backward() ? dominant.data_ptr<int32_t>() : nullptr;
  if (launch != attend || fused::needs_cleared_workspace(p)) fused::clear_workspace(p, workspace.data_ptr());
  launch(p, keys, workspace.data_ptr());
  return out;
}

at::Tensor cleared_workspace(const Inputs& in, const fused::AttentionParams& p) {
  const at::Tensor workspace = at::empty({fused::workspace_bytes(p)}, in.q.options().dtype(at::kByte));
  fused::clear_workspace(p, workspace.data_ptr());
  return workspace;
}

void first_half(const Inputs& in, const Outputs& to, const at::Tensor& saved) {
  const c10::DeviceGuard guard(in.q.device());
  const fixed_order::AttentionParams p = fixed_order::params_on_device(in, to);
  fused::forward(p, saved.numel() > 0 ? static_cast<int32_t*>(saved.data_ptr()) : nullptr, cleared_workspace(in, p).data_ptr());
}

void second_half(const Inputs& in, const Outputs& to, const at::Tensor& saved) {
  const c10::DeviceGuard guard(in.q.device());
  const fixed_order::AttentionParams p = fixed_order::params_on_device(in, to);
  fused::backward(p, static_cast<const int32_t*>(saved.data_ptr()), cleared_workspace(in, p).data_ptr());
}

std::optional<std::string> refuses(const Inputs& in) {
  if (!in.q.is_cuda()) return std::nullopt;
  const fixed_order::AttentionParams p = fixed_order::params_on_device(in, {});
  return in.kind == Sequences::kWhole ? fused::unsupported_reason(p) : fused::unsupported_reason(p, fused::sequences_of(in));
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

}  // namespace

KernelVariant fused_variant(const std::string& name, const std::string& summary, Attend* attend) {
  return {.name = name,
          .op = Op::kSoftmax,
          .device = Device::kCuda,
          .summary = summary,
          .domain = {.ops = {Op::kSoftmax},
                     .dtypes = {Dtype::kFloat16, Dtype::kBFloat16},
                     .head_dim = {1, 128},
                     .head_dim_v = {1, 128},
                     .equal_head_dims = true},
          .contract = contract(),
          .promises = fixed_order::every_promise(),
          .refuses = refuses,
          .run = [attend](const Inputs& in) { return run(in, attend); }};
}

namespace {

const Register<KernelVariant> registered{fused::with_sequences(fused_variant(
    "softmax.cuda.fused", "Hopper matrix units, no logits in memory, batch-invariant, forward and backward", attend))};
const Register<TwoHalves> halves{{.name = "softmax.cuda.fused", .forward = first_half, .backward = second_half}};

}  // namespace
}  // namespace attest
