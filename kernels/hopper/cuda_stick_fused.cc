// stickbreaking.cuda.fused: the record of the kernels in stick_*.cu, for Hopper. Unusual: the stick is a product of 1 − β, in the
// linear domain, along keys that a thread owns in runs; nothing of size Sq × Skv is kept, and a block stops where its sticks are
// exactly 0. One owner and one order for every sum, in kernels/hopper/README.md.
#include <c10/core/DeviceGuard.h>

#include "kernels/device/cuda_run.h"
#include "kernels/hopper/cuda_stick_fused.h"
#include "kernels/hopper/sequence_inputs.h"
#include "kernels/two_halves.h"

namespace attest {
namespace {

void attend(const stick::AttentionParams& p, void* saved, void* workspace) {
  stick::forward(p, saved, workspace);
  if (p.backward()) stick::backward(p, saved, workspace);
}

/// In place, whatever their kind.
Outputs run_sequences(const Inputs& in) {
  const Outputs out = fixed_order::fresh_outputs(in, Device::kCuda);
  const fixed_order::AttentionParams p = fixed_order::params_on_device(in, out);
  const fused::Sequences sequences = fused::sequences_of(in);
  const auto bytes = [&](int64_t count) { return at::empty({count}, in.q.options().dtype(at::kByte)); };
  const at::Tensor workspace = bytes(stick::workspace_bytes(p, sequences));
  const at::Tensor saved = bytes(in.backward() ? stick::saved_bytes(p, sequences) : 0);
  void* const sticks = saved.numel() > 0 ? saved.data_ptr() : nullptr;
  stick::clear_workspace(p, workspace.data_ptr());
  stick::forward(p, sequences, sticks, workspace.data_ptr());
  if (in.backward()) stick::backward(p, sequences, sticks, workspace.data_ptr());
  return out;
}

Outputs run(const Inputs& in, AttendSticks* launch) {
  const c10::DeviceGuard guard(in.q.device());
  if (in.kind != Sequences::kWhole) return run_sequences(in);
  const Outputs out = fixed_order::fresh_outputs(in, Device::kCuda);
  const fixed_order::AttentionParams p = fixed_order::params_on_device(in, out);
  const at::Tensor workspace = at::empty({stick::workspace_bytes(p)}, in.q.options().dtype(at::kByte));
  const int64_t saved_bytes = in.backward() ? stick::saved_bytes(p) : 0;
  const at::Tensor saved = at::empty({saved_bytes}, in.q.options().dtype(at::kByte));
  void* const sticks = saved_bytes > 0 ? saved.data_ptr() : nullptr;
  stick::clear_workspace(p, workspace.data_ptr());
  launch(p, sticks, workspace.data_ptr());
  return out;
}

/// Nothing is saved where saved_bytes() is 0.
void* sticks_in(const at::Tensor& saved) { return saved.numel() > 0 ? saved.data_ptr() : nullptr; }

at::Tensor cleared_workspace(const Inputs& in, const stick::AttentionParams& p) {
  const at::Tensor workspace = at::empty({stick::workspace_bytes(p)}, in.q.options().dtype(at::kByte));
  stick::clear_workspace(p, workspace.data_ptr());
  return workspace;
}

void first_half(const Inputs& in, const Outputs& to, const at::Tensor& saved) {
  const c10::DeviceGuard guard(in.q.device());
  const fixed_order::AttentionParams p = fixed_order::params_on_device(in, to);
  stick::forward(p, sticks_in(saved), cleared_workspace(in, p).data_ptr());
}

void second_half(const Inputs& in, const Outputs& to, const at::Tensor& saved) {
  const c10::DeviceGuard guard(in.q.device());
  const fixed_order::AttentionParams p = fixed_order::params_on_device(in, to);
  stick::backward(p, sticks_in(saved), cleared_workspace(in, p).data_ptr());
}

std::optional<std::string> refuses(const Inputs& in) {
  if (!in.q.is_cuda()) return std::nullopt;
  const fixed_order::AttentionParams p = fixed_order::params_on_device(in, {});
  return in.kind == Sequences::kWhole ? stick::unsupported_reason(p) : stick::unsupported_reason(p, fused::sequences_of(in));
}

}  // namespace

ToleranceContract stick_contract() {
  return {.tolerance = forward_error(2),
          .arithmetic = {.accumulate = Arithmetic::Accumulate::kMatrixUnit, .operands_rounded = true, .p_in_fp16_unscaled = true},
          .reason = "weights and dz are rounded to the input dtype before a matrix product (in fp16 times a power of two, which loses "
                    "less than the declared arithmetic may); sums, sticks and shares are fp32, and 1 − β is never a difference"};
}

KernelVariant stick_variant(const std::string& name, const std::string& summary, AttendSticks* attend) {
  return {.name = name,
          .op = Op::kStickBreaking,
          .device = Device::kCuda,
          .summary = summary,
          .domain = {.ops = {Op::kStickBreaking},
                     .dtypes = {Dtype::kFloat16, Dtype::kBFloat16},
                     .head_dim = {1, 128},
                     .head_dim_v = {1, 128}},
          .contract = stick_contract(),
          .promises = fixed_order::every_promise(),
          .refuses = refuses,
          .run = [attend](const Inputs& in) { return run(in, attend); }};
}

namespace {

const Register<KernelVariant> registered{fused::with_sequences(stick_variant(
    "stickbreaking.cuda.fused", "Hopper matrix units, no scores in memory, batch-invariant, stops where the stick is used up", attend))};
const Register<TwoHalves> halves{{.name = "stickbreaking.cuda.fused", .forward = first_half, .backward = second_half}};

}  // namespace
}  // namespace attest
