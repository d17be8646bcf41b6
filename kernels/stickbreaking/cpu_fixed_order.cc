// stickbreaking.cpu.fixed_order: stick-breaking attention in plain C++ and fp32, the host twin of
// stickbreaking.cuda.fixed_order. Unusual: 1 − β is σ(−z) and never a difference, and the backward pass accumulates F from the
// farthest key, starting with what the remaining stick is worth, so gradients survive saturation. Each sum and product
// runs in the one order that kernels/stickbreaking/README.md writes down. It promises every law.
#include "kernels/device/attention_tensors.h"
#include "kernels/device/fixed_order_host.h"
#include "kernels/device/fixed_order_math.h"

namespace attest {
namespace {

using fixed_order::HostRow;
using fixed_order::Logistic;

/// From the nearest visible key to the farthest: A = β·stick, then stick = stick·(1 − β). rem is the stick left over.
void forward(HostRow& row) {
  float stick = 1.0F;
  for (auto j = row.visible.rbegin(); j != row.visible.rend(); ++j) {
    const Logistic part = fixed_order::logistic(row.logits[*j]);
    row.weights[*j] = part.beta * stick;
    stick = stick * part.rest;
  }
  row.lse = stick;
}

/// From the farthest visible key to the nearest, F = drem·rem at first: a = A·dA, dz = (1 − β)·a − β·F, then F = F + a.
void backward(HostRow& row, const float* drem) {
  float farther = drem == nullptr ? 0.0F : *drem * row.lse;
  for (const int64_t j : row.visible) {
    const Logistic part = fixed_order::logistic(row.logits[j]);
    const float a = row.weights[j] * row.dweights[j];
    row.dlogits[j] = part.rest * a - part.beta * farther;
    farther = farther + a;
  }
}

Outputs run(const Inputs& in) {
  const Outputs out = fixed_order::fresh_outputs(in, Device::kCpu);
  fixed_order::run_on_host(fixed_order::params_of(in, out), {.forward = forward, .backward = backward});
  return out;
}

const Register<KernelVariant> registered{{
    .name = "stickbreaking.cpu.fixed_order",
    .op = Op::kStickBreaking,
    .device = Device::kCpu,
    .summary = "plain fp32 on the CPU in a fixed order of sums, the host twin of stickbreaking.cuda.fixed_order",
    .domain = {.ops = {Op::kStickBreaking}},
    .contract = fixed_order::fixed_order_contract(),
    .promises = fixed_order::every_promise(),
    .run = run,
}};

}  // namespace
}  // namespace attest
