// What the libtorch SDPA variants share: masks in the form the backends take, and libtorch's own word on what it accepts.
#pragma once

#include <ATen/SDPBackend.h>

#include <limits>
#include <optional>
#include <string>

#include "harness/tensors.h"
#include "harness/variant.h"

namespace attest::sdpa {

/// How a problem's masks reach a backend. `is_causal` is libtorch's flag: top-left, hence used only where Sq = Skv and no key
/// is padded; everything else goes through `bias`, [B or 1, 1, Sq, Skv] in q's dtype, 0 where visible. Neither where every
/// query sees every key, as one query does by causality.
struct Masking {
  bool is_causal = false;
  std::optional<at::Tensor> bias;
};

/// `hidden` is what is added to a hidden logit. libtorch turns bool masks into −∞, but into −65504 for cuDNN.
Masking masking(const Inputs& inputs, double hidden = -std::numeric_limits<double>::infinity(), bool has_causal_flag = true);

/// The bias as the efficient backend wants it: [B, Hq, Sq, Skv], rows 16-element aligned, last dimension contiguous.
Masking aligned_for_efficient(Masking masking, const Inputs& inputs);

/// Which tensor does not have its rows at multiples of 16 bytes, as vector loads need; the dispatcher's callers have them so.
std::optional<std::string> misalignment(const Inputs& inputs);

/// Which check of libtorch's to ask. On the CPU the choice operator with all other backends off; on CUDA sdp::can_use_*.
std::optional<std::string> refusal(at::SDPBackend backend, const Inputs& inputs, const Masking& masking);

/// What every backend's domain starts from: softmax, finite padded keys (the bias is added: 0·NaN is NaN), no gradient of lse.
CaseDomain common_domain();

/// softmax.torch.WHAT@DEVICE with the promises that hold for every backend: it returns, agrees with the oracle, and a forward
/// run repeats. Nothing is documented about fully masked rows or batch invariance.
KernelVariant variant(const std::string& what, Device device);

/// Last dimension filled with zeros up to a multiple of 8.
at::Tensor pad_head_dim(const at::Tensor& tensor);

}  // namespace attest::sdpa
