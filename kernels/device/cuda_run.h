// The Torch side of the CUDA variants: outputs, workspace, stream and device for a launch function that knows no Torch.
#pragma once

#include <functional>

#include "kernels/device/attention_tensors.h"

namespace attest::fixed_order {

struct Workspace {
  bool separate_logits = false;  // gradients need the logits beside the weights
};

/// params_of, on the device that holds `in` and its current stream.
AttentionParams params_on_device(const Inputs& in, const Outputs& out);

/// Runs `launch` on the current stream of the device that holds `in`. Workspace: fp32 [B, Hq, Sq, Skv], once for the forward
/// pass alone, with gradients twice, or three times with separate logits.
Outputs run_on_cuda(const Inputs& in, Workspace workspace, const std::function<void(const AttentionParams&)>& launch);

/// What the CUDA fixed-order kernels support: fp16 and bf16, head dims up to 256.
CaseDomain fixed_order_cuda_domain(Op op);

}  // namespace attest::fixed_order
