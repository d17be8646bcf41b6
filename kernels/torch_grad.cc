#include "kernels/torch_grad.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include "harness/error.h"

namespace attest {
namespace {

at::Tensor leaf(const at::Tensor& tensor, bool differentiate) { return tensor.detach().requires_grad_(differentiate); }

at::Tensor zeros_if_undefined(const at::Tensor& gradient, const at::Tensor& like) {
  return gradient.defined() ? gradient : at::zeros_like(like);
}

}  // namespace

Outputs run_with_autograd(const Inputs& inputs, const DifferentiableForward& forward) {
  const at::AutoGradMode grad_mode(inputs.backward());
  const std::vector<at::Tensor> leaves{leaf(inputs.q, inputs.backward()), leaf(inputs.k, inputs.backward()),
                                       leaf(inputs.v, inputs.backward())};
  const auto results = forward(leaves[0], leaves[1], leaves[2]);
  Outputs outputs;
  outputs.out = results.at(0).detach();
  const bool has_second = results.size() > 1 && results[1].defined();
  if (has_second) outputs.lse = results[1].detach();
  if (!inputs.backward()) return outputs;

  if (!results[0].requires_grad()) throw LaunchError("the operator's output carries no gradient: it has no autograd kernel");
  std::vector<at::Tensor> roots{results[0]}, seeds{inputs.dout};
  if (inputs.dlse.defined() && has_second) {
    if (!results[1].requires_grad())
      throw LaunchError("the operator's second output is not differentiable, and a gradient arrives for it");
    roots.push_back(results[1]);
    seeds.push_back(inputs.dlse);
  }
  const auto gradients = torch::autograd::grad(roots, leaves, seeds, false, false, /*allow_unused=*/true);
  outputs.dq = zeros_if_undefined(gradients[0], inputs.q);
  outputs.dk = zeros_if_undefined(gradients[1], inputs.k);
  outputs.dv = zeros_if_undefined(gradients[2], inputs.v);
  return outputs;
}

}  // namespace attest
