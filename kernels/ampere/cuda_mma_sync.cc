// softmax.cuda.mma_sync and stickbreaking.cuda.mma_sync: the records of the portable kernels, for compute capability 8.0 and later.
// Unusual: one warp's matrix products (mma.sync), operands read where they lie, whatever their strides, and every head dim up to
// 256; reduction contracts, and bits, are those of the kernels for Hopper. They promise every law, and to be their twins.
#include <c10/core/DeviceGuard.h>

#include "harness/twin.h"
#include "kernels/ampere/softmax.h"
#include "kernels/ampere/stick.h"
#include "kernels/device/cuda_run.h"

namespace attest {
namespace {

using fixed_order::AttentionParams;

at::Tensor bytes_on(const Inputs& in, int64_t count) { return at::empty({count}, in.q.options().dtype(at::kByte)); }

/// The lengths of `in` on its device.
struct DeviceLengths {
  at::Tensor q, kv;
  portable::Lengths lengths;

  explicit DeviceLengths(const Inputs& in) {
    if (in.kind == Sequences::kWhole) return;
    const bool packed = in.kind == Sequences::kPacked;
    q = packed ? in.cu_seqlens_q() : in.seqlens_q();
    kv = packed ? in.cu_seqlens_kv() : in.seqlens_kv();
    const int32_t *of_q = q.data_ptr<int32_t>(), *of_kv = kv.data_ptr<int32_t>();
    if (packed) {
      const AttentionProblem extent = in.extent();
      lengths = {.begins_q = of_q, .begins_kv = of_kv, .count = extent.batch, .most_q = extent.seqlen_q, .most_kv = extent.seqlen_kv};
    } else {
      lengths = {.used_q = of_q, .used_kv = of_kv};
    }
  }
};

Outputs run_softmax(const Inputs& in) {
  const c10::DeviceGuard guard(in.q.device());
  const Outputs out = fixed_order::fresh_outputs(in, Device::kCuda);
  const AttentionParams p = fixed_order::params_on_device(in, out);
  const DeviceLengths on_device(in);
  const at::Tensor workspace = bytes_on(in, portable::softmax::workspace_bytes(p));
  const at::Tensor dominant = bytes_on(in, in.backward() ? p.num_rows() * int64_t{sizeof(int32_t)} : 0);
  auto* const keys = in.backward() ? static_cast<int32_t*>(dominant.data_ptr()) : nullptr;
  portable::softmax::forward(p, keys, workspace.data_ptr(), on_device.lengths);
  if (in.backward()) portable::softmax::backward(p, keys, workspace.data_ptr(), on_device.lengths);
  return out;
}

Outputs run_sticks(const Inputs& in) {
  const c10::DeviceGuard guard(in.q.device());
  const Outputs out = fixed_order::fresh_outputs(in, Device::kCuda);
  const AttentionParams p = fixed_order::params_on_device(in, out);
  const DeviceLengths on_device(in);
  const at::Tensor workspace = bytes_on(in, portable::stick::workspace_bytes(p));
  const at::Tensor saved = bytes_on(in, in.backward() ? portable::stick::saved_bytes(p) : 0);
  void* const sticks = in.backward() ? saved.data_ptr() : nullptr;
  portable::stick::forward(p, sticks, workspace.data_ptr(), on_device.lengths);
  if (in.backward()) portable::stick::backward(p, sticks, workspace.data_ptr(), on_device.lengths);
  return out;
}

ToleranceContract contract(bool from_lse) {
  return {.tolerance = forward_error(2),
          .arithmetic = {.accumulate = Arithmetic::Accumulate::kMatrixUnit,
                         .operands_rounded = true,
                         .p_in_fp16_unscaled = true,
                         .p_from_lse = from_lse},
          .reason = "the arithmetic of the kernels for Hopper, which tell it: weights and dz are rounded to the input dtype before a "
                    "matrix product, sums are fp32"};
}

std::set<std::string> promises() {
  std::set<std::string> names = fixed_order::every_promise();
  for (const char* law : {"packed_equals_separate", "lengths_equal_trimmed", "sequences_apart", "equals_twin"})
    for (const char* side : {".forward", ".gradients"}) names.insert(std::string(law) + side);
  return names;
}

KernelVariant record(Op op, const char* name, const char* summary, Outputs (*run)(const Inputs&),
                     std::optional<std::string> (*unsupported)(const AttentionParams&)) {
  return {.name = name,
          .op = op,
          .device = Device::kCuda,
          .summary = summary,
          .domain = {.ops = {op},
                     .dtypes = {Dtype::kFloat16, Dtype::kBFloat16},
                     .head_dim = {1, 256},
                     .head_dim_v = {1, 256},
                     .sequences = EnumSet<Sequences>::all()},
          .contract = contract(op == Op::kSoftmax),
          .promises = promises(),
          .refuses = [unsupported](const Inputs& in) -> std::optional<std::string> {
            if (!in.q.is_cuda()) return std::nullopt;
            return unsupported(fixed_order::params_on_device(in, {}));
          },
          .run = run};
}

const Register<KernelVariant> softmax{record(Op::kSoftmax, "softmax.cuda.mma_sync",
                                             "matrix products of one warp, for sm_80 and later, any head dims up to 256", run_softmax,
                                             portable::softmax::unsupported_reason)};
const Register<KernelVariant> sticks{record(Op::kStickBreaking, "stickbreaking.cuda.mma_sync",
                                            "matrix products of one warp, for sm_80 and later, any head dims up to 256", run_sticks,
                                            portable::stick::unsupported_reason)};
const Register<Twin> softmax_twin{{.name = "softmax.cuda.mma_sync", .of = "softmax.cuda.fused"}};
const Register<Twin> stick_twin{{.name = "stickbreaking.cuda.mma_sync", .of = "stickbreaking.cuda.fused"}};

}  // namespace
}  // namespace attest
