// attest::stickbreaking_decode and attest::kv_cache_append_ on CUDA, by the kernels of stickbreaking.cuda.decode. What only the device
// knows, a length or an append that doesn't fit, is reported by the next of these calls on that device.
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <memory>
#include <mutex>
#include <vector>

#include "kernels/device/cuda_run.h"
#include "kernels/hopper/stick_decode.h"
#include "kernels/torch_decode.h"

namespace attest {
namespace {

using at::Tensor;

/// Of a device, from the first call on to the end of the process.
DeviceErrors& errors_of(int device) {
  static std::mutex mutex;
  static auto& errors = *new std::vector<std::unique_ptr<DeviceErrors>>;
  const std::lock_guard lock(mutex);
  if (static_cast<size_t>(device) >= errors.size()) errors.resize(device + 1);
  if (errors[device] == nullptr) errors[device] = std::make_unique<DeviceErrors>(device);
  return *errors[device];
}

uint32_t* flag_after_check(const char* name, int device) {
  DeviceErrors& errors = errors_of(device);
  if (const auto sentence = errors.take()) TORCH_CHECK(false, name, ": ", *sentence);
  return errors.flag();
}

std::tuple<Tensor, Tensor> decode(const Tensor& q, const Tensor& k_cache, const Tensor& v_cache, const Tensor& seqlens,
                                  const std::optional<Tensor>& mask, bool attend_current, std::optional<double> scale) {
  check_decode(q, k_cache, v_cache, seqlens, mask, scale);
  const c10::DeviceGuard guard(q.device());
  const Inputs in = decode_inputs(q, k_cache, v_cache, mask, attend_current, scale);
  const Outputs out = fixed_order::fresh_outputs(in, Device::kCuda);
  const fixed_order::AttentionParams p = fixed_order::params_on_device(in, out);
  if (const auto reason = stick::decode_unsupported_reason(p)) TORCH_CHECK(false, kDecodeOperator, " on CUDA: ", *reason);
  const Tensor lengths = seqlens.contiguous(), workspace = at::empty({stick::decode_workspace_bytes(p)}, q.options().dtype(at::kByte));
  stick::decode(p, {lengths.data_ptr<int32_t>(), flag_after_check(kDecodeOperator, p.device)}, workspace.data_ptr());
  return {out.out, out.lse};
}

template <class T>
fixed_order::View<T> view_of(const Tensor& t) {
  return {t.data_ptr(), t.stride(0), t.stride(1), t.stride(2), t.stride(3)};
}

void append(Tensor& k_cache, Tensor& v_cache, Tensor& seqlens, const Tensor& k, const Tensor& v) {
  check_append(k_cache, v_cache, seqlens, k, v);
  TORCH_CHECK(k.element_size() == 2, kAppendOperator, " on CUDA: dtype ", k.scalar_type(), " is not supported; use float16 or bfloat16");
  TORCH_CHECK(seqlens.is_contiguous(), kAppendOperator, " on CUDA: seqlens must be contiguous");
  const c10::DeviceGuard guard(k.device());
  const fixed_order::AttentionParams here = fixed_order::params_on_device({.q = k, .k = k, .v = v}, {});
  stick::append_to_cache({.batch = k.size(0),
                          .heads = k.size(1),
                          .rows = k.size(2),
                          .head_dim = k.size(3),
                          .head_dim_v = v.size(3),
                          .capacity = k_cache.size(2),
                          .k = view_of<const void>(k),
                          .v = view_of<const void>(v),
                          .k_cache = view_of<void>(k_cache),
                          .v_cache = view_of<void>(v_cache),
                          .seqlens_kv = seqlens.data_ptr<int32_t>(),
                          .errors = flag_after_check(kAppendOperator, here.device),
                          .device = here.device,
                          .stream = here.stream});
}

TORCH_LIBRARY_IMPL(attest, CUDA, m) {
  m.impl("stickbreaking_decode", decode);
  m.impl("kv_cache_append_", append);
}

}  // namespace
}  // namespace attest
