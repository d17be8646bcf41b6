// softmax.torch.flash: libtorch's flash backends, each by its own operator: _scaled_dot_product_flash_attention_for_cpu, and
// _scaled_dot_product_flash_attention (FlashAttention 2) on CUDA. Unusual: probabilities are rounded to the input dtype before
// they meet v, the backward recomputes them from lse and takes δ from the rounded out, and on the CPU gradients are accumulated
// in the input dtype. The CPU's lse serves its own backward alone: in 16-bit dtypes it comes from a cubic exp (fexp_u20,
// relative error up to 1.1e-4) and it is 0 where no key is visible; so it is not given out as lse. On CUDA there is no mask
// argument: no padded keys, causal only where Sq = Skv; head dims are padded to a multiple of 8 with zeros, as
// scaled_dot_product_attention does. Grouped heads are the backend's own.
// Promises: it returns, agrees with the oracle, and it repeats; gradients repeat on the CPU, on CUDA
// they are summed by atomics.
#include "kernels/softmax/torch_sdpa.h"

namespace attest::sdpa {
namespace {

Outputs run_cpu(const Inputs& in) {
  const Masking mask = masking(in);
  const double scale = in.problem.softmax_scale;
  Outputs o;
  at::Tensor lse;
  std::tie(o.out, lse) =
      at::_scaled_dot_product_flash_attention_for_cpu(in.q, in.k, in.v, /*dropout_p=*/0.0, mask.is_causal, mask.bias, scale);
  if (in.backward())
    std::tie(o.dq, o.dk, o.dv) = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        in.dout, in.q, in.k, in.v, o.out, lse, /*dropout_p=*/0.0, mask.is_causal, mask.bias, scale);
  return o;
}

Outputs run_cuda(const Inputs& in) {
  const double scale = in.problem.softmax_scale;
  const bool causal = masking(in).is_causal;
  const at::Tensor q = pad_head_dim(in.q), k = pad_head_dim(in.k), v = pad_head_dim(in.v);
  const auto [out, lse, cum_q, cum_k, max_q, max_k, rng_state, unused, debug] =
      at::_scaled_dot_product_flash_attention(q, k, v, /*dropout_p=*/0.0, causal, /*return_debug_mask=*/false, scale);
  const auto trim = [&](const at::Tensor& t) { return t.slice(-1, 0, in.problem.head_dim); };
  Outputs o;
  o.out = trim(out);
  o.lse = lse.slice(-1, 0, in.problem.seqlen_q);
  if (!in.backward()) return o;
  const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_backward_symint(
      pad_head_dim(in.dout), q, k, v, out, lse, cum_q, cum_k, max_q, max_k, /*dropout_p=*/0.0, causal, rng_state, unused, scale);
  o.dq = trim(dq);
  o.dk = trim(dk);
  o.dv = trim(dv);
  return o;
}

KernelVariant flash(Device device, Arithmetic::Accumulate accumulate) {
  KernelVariant v = variant("flash", device);
  v.domain.equal_head_dims = true;
  v.contract = {
      .tolerance = forward_error(2),
      .arithmetic = {.accumulate = accumulate, .operands_rounded = true, .p_in_fp16_unscaled = true, .p_from_lse = true},
      .reason = "probabilities e^(z - max) and dz are rounded to the input dtype before a matrix product, sums are fp32"};
  v.known_failures["agrees_with_oracle.forward"] =
      "NaN where the scale is not positive (on the CPU under a causal mask), subnormals flushed on the CPU; see the README";
  v.refuses = [](const Inputs& in) {
    const auto unaligned = in.q.is_cuda() && in.problem.head_dim % 8 == 0 ? misalignment(in) : std::nullopt;  // else padded
    return unaligned ? unaligned : refusal(at::SDPBackend::flash_attention, in, masking(in));
  };
  return v;
}

KernelVariant flash_cpu() {
  KernelVariant v = flash(Device::kCpu, Arithmetic::Accumulate::kSequentialFp32);
  v.summary = "libtorch's tiled CPU attention; its lse is private to its backward";
  v.produces = EnumSet<Quantity>::all().without(Quantity::kLse);
  v.promises.insert("repeat_run.gradients");
  v.run = run_cpu;
  return v;
}

KernelVariant flash_cuda() {
  KernelVariant v = flash(Device::kCuda, Arithmetic::Accumulate::kMatrixUnit);
  v.summary = "libtorch's FlashAttention 2; no masks but a square causal one; own grouped heads";
  v.domain.dtypes = {Dtype::kFloat16, Dtype::kBFloat16};
  v.domain.head_dim.hi = 256;
  v.domain.square_if_causal = true;
  v.domain.padding = {KeyPadding::kNone};
  v.run = run_cuda;
  return v;
}

const Register<KernelVariant> cpu{flash_cpu()};
const Register<KernelVariant> cuda{flash_cuda()};

}  // namespace
}  // namespace attest::sdpa
