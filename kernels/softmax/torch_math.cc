// softmax.torch.math: libtorch's composite backend, at::_scaled_dot_product_attention_math, on CPU and CUDA; backward through
// autograd. Unusual: q and k are each multiplied by √|scale| before the product; fp16 and bf16 are widened to fp32 first
// (libtorch keeps reductions in fp32 unless allowFP16BF16ReductionMathSDP is set, which is not), so nothing is rounded before the
// outputs; grouped heads are repeated in fp32 and their gradients summed by autograd in fp32. It returns no lse. Hidden values are
// multiplied by 0, so they decide the sign of zeros. Promises: it returns, agrees with the oracle, and repeats; gradients repeat
// too on the CPU.
#include "kernels/softmax/torch_sdpa.h"
#include "kernels/torch_grad.h"

namespace attest::sdpa {
namespace {

Outputs run(const Inputs& in) {
  const Masking mask = masking(in);
  return run_with_autograd(in, [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    const auto [out, probabilities] =
        at::_scaled_dot_product_attention_math(q, k, v, mask.bias, /*dropout_p=*/0.0, mask.is_causal,
                                               /*dropout_mask=*/std::nullopt, in.problem.softmax_scale, in.problem.group() > 1);
    return std::vector<at::Tensor>{out};
  });
}

KernelVariant math(Device device) {
  KernelVariant v = variant("math", device);
  v.summary = "libtorch's composite SDPA in fp32 arithmetic, autograd backward, no lse";
  v.produces = EnumSet<Quantity>::all().without(Quantity::kLse);
  v.contract = {
      .tolerance = forward_error(2), .arithmetic = {}, .reason = "every step is plain fp32; sums of any order lie within n·u"};
  if (device == Device::kCpu) v.promises.insert("repeat_run.gradients");
  v.run = run;
  return v;
}

const Register<KernelVariant> cpu{math(Device::kCpu)};
const Register<KernelVariant> cuda{math(Device::kCuda)};

}  // namespace
}  // namespace attest::sdpa
