#include "kernels/softmax/torch_sdpa.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace attest::sdpa {
namespace {

/// libtorch says why it refuses in warnings; this keeps them instead of printing.
class CapturedWarnings : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override {
    if (!warning.msg().ends_with("kernel not used because:")) sentences_.push_back(warning.msg());
  }
  std::string text() const { return fmt::format("libtorch: {}", fmt::join(sentences_, " ")); }
  bool empty() const { return sentences_.empty(); }

 private:
  std::vector<std::string> sentences_;
};

/// All SDPA backends off but one, for the lifetime of the object.
class OnlyBackend {
 public:
  explicit OnlyBackend(at::SDPBackend backend) {
    auto& context = at::globalContext();
    context.setSDPUseMath(backend == at::SDPBackend::math);
    context.setSDPUseFlash(backend == at::SDPBackend::flash_attention);
  }
  ~OnlyBackend() {
    at::globalContext().setSDPUseMath(math_);
    at::globalContext().setSDPUseFlash(flash_);
  }
  OnlyBackend(const OnlyBackend&) = delete;
  OnlyBackend& operator=(const OnlyBackend&) = delete;

 private:
  bool math_ = at::globalContext().userEnabledMathSDP();
  bool flash_ = at::globalContext().userEnabledFlashSDP();
};

std::string or_plain(const CapturedWarnings& warnings) {
  return warnings.empty() ? "libtorch refuses these inputs without a reason" : warnings.text();
}

std::optional<std::string> cpu_refusal(at::SDPBackend backend, const Inputs& in, const Masking& masking) {
  CapturedWarnings warnings;
  const c10::WarningUtils::WarningHandlerGuard guard(&warnings);
  const OnlyBackend only(backend);
  try {
    const auto choice = at::_fused_sdp_choice(in.q, in.k, in.v, masking.bias, 0.0, masking.is_causal, in.problem.softmax_scale,
                                              in.problem.group() > 1);
    if (choice == static_cast<int64_t>(backend)) return std::nullopt;
  } catch (const c10::Error& error) {
    if (warnings.empty()) return "libtorch: " + std::string(error.what_without_backtrace());
  }
  return or_plain(warnings);
}

using CanUse = bool (*)(const sdp::sdp_params&, bool);

/// sdp::can_use_*_attention of libtorch_cuda, which is loaded at run time and never linked.
CanUse can_use(at::SDPBackend backend) {
  static void* const library = dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_NOLOAD);
  const char* symbol = backend == at::SDPBackend::flash_attention ? "_ZN3sdp23can_use_flash_attentionERKNS_10sdp_paramsEb"
                       : backend == at::SDPBackend::efficient_attention
                           ? "_ZN3sdp31can_use_mem_efficient_attentionERKNS_10sdp_paramsEb"
                           : "_ZN3sdp23can_use_cudnn_attentionERKNS_10sdp_paramsEb";
  return library == nullptr ? nullptr : reinterpret_cast<CanUse>(dlsym(library, symbol));
}

std::optional<std::string> cuda_refusal(at::SDPBackend backend, const Inputs& in, const Masking& masking) {
  const CanUse check = can_use(backend);
  if (check == nullptr) return "this libtorch_cuda does not export its own check of the backend";
  CapturedWarnings warnings;
  const c10::WarningUtils::WarningHandlerGuard guard(&warnings);
  const at::AutoGradMode grad_mode(true);
  const auto leaf = [&](const at::Tensor& t) { return t.detach().requires_grad_(in.backward()); };
  const sdp::sdp_params params{leaf(in.q), leaf(in.k), leaf(in.v), masking.bias, 0.0, masking.is_causal, in.problem.group() > 1};
  if (check(params, /*debug=*/true)) return std::nullopt;
  return or_plain(warnings);
}

/// bool [Sq, Skv]: key j ≤ p_i = Skv − Sq + i.
at::Tensor bottom_right(const AttentionProblem& p, at::Device device) {
  return at::ones({p.seqlen_q, p.seqlen_kv}, at::TensorOptions(at::kBool).device(device)).tril(p.seqlen_kv - p.seqlen_q);
}

}  // namespace

Masking masking(const Inputs& inputs, double hidden, bool has_causal_flag) {
  const AttentionProblem& p = inputs.problem;
  const bool padded = inputs.key_padding_mask.defined();
  if (!padded && (!p.causal || p.seqlen_q == 1)) return {};  // one query stands at the last key and sees all
  if (!padded && has_causal_flag && p.seqlen_q == p.seqlen_kv) return {.is_causal = true};
  at::Tensor keep = at::ones({1, 1, p.seqlen_q, p.seqlen_kv}, at::TensorOptions(at::kBool).device(inputs.q.device()));
  if (p.causal) keep = keep.logical_and(bottom_right(p, inputs.q.device()));
  if (padded) keep = keep.logical_and(inputs.key_padding_mask.view({p.batch, 1, 1, p.seqlen_kv}));
  return {.bias = at::zeros(keep.sizes(), inputs.q.options()).masked_fill_(keep.logical_not(), hidden)};
}

Masking aligned_for_efficient(Masking masking, const Inputs& inputs) {
  if (!masking.bias) return masking;
  const AttentionProblem& p = inputs.problem;
  const int64_t row = (p.seqlen_kv + 15) / 16 * 16;
  at::Tensor room = at::zeros({masking.bias->size(0), 1, p.seqlen_q, row}, masking.bias->options());
  at::Tensor bias = room.slice(3, 0, p.seqlen_kv);
  bias.copy_(*masking.bias);
  masking.bias = bias.expand({p.batch, p.num_heads_q, p.seqlen_q, p.seqlen_kv});
  return masking;
}

std::optional<std::string> misalignment(const Inputs& inputs) {
  constexpr int64_t kBytes = 16;
  for (const auto& [name, t] : {std::pair{"q", inputs.q}, {"k", inputs.k}, {"v", inputs.v}, {"dout", inputs.dout}}) {
    if (!t.defined()) continue;
    bool aligned = reinterpret_cast<uintptr_t>(t.const_data_ptr()) % kBytes == 0;
    for (int64_t d = 0; d + 1 < t.dim(); ++d) aligned = aligned && t.stride(d) * t.itemsize() % kBytes == 0;
    if (!aligned) return fmt::format("the rows of {} are not aligned to {} bytes", name, kBytes);
  }
  return std::nullopt;
}

std::optional<std::string> refusal(at::SDPBackend backend, const Inputs& inputs, const Masking& masking) {
  return inputs.q.is_cuda() ? cuda_refusal(backend, inputs, masking) : cpu_refusal(backend, inputs, masking);
}

CaseDomain common_domain() { return {.ops = {Op::kSoftmax}, .poison = {false}, .dlse = {false}}; }

KernelVariant variant(const std::string& what, Device device) {
  KernelVariant v;
  v.name = fmt::format("softmax.torch.{}@{}", what, name_of(device));
  v.op = Op::kSoftmax;
  v.device = device;
  v.domain = common_domain();
  v.promises = {"returns",
                "agrees_with_oracle.forward",
                "agrees_with_oracle.gradients",
                "repeat_run.forward"};
  v.known_failures["agrees_with_oracle.gradients"] =
      "dz is taken as P·(dP − Σ dout·out), which cancels where one key has all the weight; see the README";
  return v;
}

at::Tensor pad_head_dim(const at::Tensor& tensor) {
  const int64_t missing = (8 - tensor.size(-1) % 8) % 8;
  return missing == 0 ? tensor : at::constant_pad_nd(tensor, {0, missing}).contiguous();  // it keeps channels-last strides
}

}  // namespace attest::sdpa
