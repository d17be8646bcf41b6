// Gradients through Torch's autograd, behind a header that includes none of it.
#pragma once

#include <functional>
#include <vector>

#include "harness/tensors.h"

namespace attest {

/// `forward` called on leaves that share q, k and v; {out, lse or rem}, the second undefined when there is none.
using DifferentiableForward =
    std::function<std::vector<at::Tensor>(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v)>;

/// Runs `forward`, then, when inputs.backward(), torch::autograd::grad with dout (and dlse where given and the operator has a
/// second output). A gradient that autograd leaves undefined is zero. Throws LaunchError when an output carries no gradient.
Outputs run_with_autograd(const Inputs& inputs, const DifferentiableForward& forward);

}  // namespace attest
