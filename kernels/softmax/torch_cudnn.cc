// softmax.torch.cudnn@cuda: cuDNN's fused attention through libtorch, _scaled_dot_product_cudnn_attention and its backward.
// Unusual: hidden logits get −65504 added, not −∞, since that is what scaled_dot_product_attention makes of a bool mask for this
// backend, so a row with no visible key becomes an average and |z| near 65504 defeats the mask; lse comes as [B, Hq, Sq, 1].
// Grouped heads are the backend's own. What else it accepts depends on the cuDNN version: libtorch's check is asked for every
// input. Promises: it returns, agrees with the oracle, and a forward run repeats; libtorch calls the
// backward non-deterministic.
#include "kernels/softmax/torch_sdpa.h"

namespace attest::sdpa {
namespace {

constexpr double kHidden = -65504.0;

Outputs run(const Inputs& in) {
  const Masking mask = masking(in, kHidden);
  const double scale = in.problem.softmax_scale;
  const auto [out, lse, cum_q, cum_k, max_q, max_k, seed, offset, debug] =
      at::_scaled_dot_product_cudnn_attention(in.q, in.k, in.v, mask.bias, /*compute_log_sumexp=*/true, /*dropout_p=*/0.0,
                                              mask.is_causal, /*return_debug_mask=*/false, scale);
  Outputs o;
  o.out = out;
  o.lse = lse.dim() == 4 ? lse.squeeze(-1) : lse;
  if (!in.backward()) return o;
  std::tie(o.dq, o.dk, o.dv) = at::_scaled_dot_product_cudnn_attention_backward_symint(
      in.dout, in.q, in.k, in.v, out, lse, seed, offset, mask.bias.value_or(at::Tensor()), cum_q, cum_k, max_q, max_k,
      /*dropout_p=*/0.0, mask.is_causal, scale);
  return o;
}

KernelVariant cudnn() {
  KernelVariant v = variant("cudnn", Device::kCuda);
  v.summary = "cuDNN's fused attention through libtorch; bool masks as a bias of -65504";
  v.domain.dtypes = {Dtype::kFloat16, Dtype::kBFloat16};
  v.domain.head_dim.hi = v.domain.head_dim_v.hi = 256;
  v.domain.head_dim_multiple = 8;
  v.domain.layouts =
      v.domain.layouts.without(Layout::kExpanded);  // its check accepts an expanded q, whose strides out then takes
  v.contract = {.tolerance = forward_error(2),
                .arithmetic = {.accumulate = Arithmetic::Accumulate::kMatrixUnit,
                               .operands_rounded = true,
                               .p_in_fp16_unscaled = true,
                               .p_from_lse = true},
                .reason = "probabilities and dz are rounded to the input dtype before the tensor cores, sums are fp32"};
  v.refuses = [](const Inputs& in) {
    const auto unaligned = misalignment(in);
    return unaligned ? unaligned : refusal(at::SDPBackend::cudnn_attention, in, masking(in, kHidden));
  };
  v.known_failures["agrees_with_oracle.forward"] = "lse of a row with no visible key is finite, about the bias of -65504";
  v.run = run;
  return v;
}

const Register<KernelVariant> registered{cudnn()};

}  // namespace
}  // namespace attest::sdpa
