// softmax.torch.efficient@cuda: libtorch's memory-efficient backend (CUTLASS), _scaled_dot_product_efficient_attention and its
// backward. Unusual: masks are an additive bias that must be expanded over heads with rows aligned to 16 elements; lse comes
// padded to a multiple of 32 queries; head_dim_v may differ from head_dim; fp32 goes through tensor cores in three TF32 products.
// It has no grouped heads: equal head counts only. Head dims are multiples of 8 (libtorch's own demand for 16-bit types on sm80
// and later). Promises: it returns, agrees with the oracle, and a forward run repeats; the backward may
// split keys and sum by atomics.
#include "kernels/softmax/torch_sdpa.h"

namespace attest::sdpa {
namespace {

Masking mask_of(const Inputs& in) { return aligned_for_efficient(masking(in), in); }

Outputs run(const Inputs& in) {
  const Masking mask = mask_of(in);
  const double scale = in.problem.softmax_scale;
  const auto [out, lse, seed, offset] = at::_scaled_dot_product_efficient_attention(
      in.q, in.k, in.v, mask.bias, /*compute_log_sumexp=*/true, /*dropout_p=*/0.0, mask.is_causal, scale);
  Outputs o;
  o.out = out;
  o.lse = lse.slice(-1, 0, in.problem.seqlen_q);
  if (!in.backward()) return o;
  at::Tensor dbias;
  std::tie(o.dq, o.dk, o.dv, dbias) = at::_scaled_dot_product_efficient_attention_backward(
      in.dout, in.q, in.k, in.v, mask.bias.value_or(at::Tensor()), out, lse, seed, offset, /*dropout_p=*/0.0,
      /*grad_input_mask=*/{true, true, true, false}, mask.is_causal, scale);
  return o;
}

KernelVariant efficient() {
  KernelVariant v = variant("efficient", Device::kCuda);
  v.summary = "libtorch's memory-efficient attention; additive bias, no grouped heads";
  v.domain.group = {1, 1};
  v.domain.head_dim_multiple = 8;
  v.contract = {
      .tolerance = forward_error(2),
      .arithmetic = {.accumulate = Arithmetic::Accumulate::kMatrixUnit,
                     .operands_rounded = true,
                     .p_in_fp16_unscaled = true,
                     .p_from_lse = true},
      .reason = "probabilities e^(z - max) and dz are rounded to the input dtype before the tensor cores, sums are fp32"};
  v.refuses = [](const Inputs& in) {
    const auto unaligned = misalignment(in);
    return unaligned ? unaligned : refusal(at::SDPBackend::efficient_attention, in, mask_of(in));
  };
  v.known_failures["agrees_with_oracle.forward"] = "lse of a row with no visible key is 0, not -inf; see the README";
  v.run = run;
  return v;
}

const Register<KernelVariant> registered{efficient()};

}  // namespace
}  // namespace attest::sdpa
