// From tensors to AttentionParams: the Torch side of our kernels, shared by the host twins and the CUDA variants.
#pragma once

#include "harness/tensors.h"
#include "harness/variant.h"
#include "kernels/device/attention_params.h"

namespace attest::fixed_order {

/// Uninitialised outputs for `in`, on `device`; gradients only when in.backward().
Outputs fresh_outputs(const Inputs& in, Device device);
/// Everything but the workspace, device and stream. The tensors must outlive the parameters.
AttentionParams params_of(const Inputs& in, const Outputs& out);
/// Every property's name: a fixed-order kernel promises them all.
std::set<std::string> every_promise();
/// And that its bits are those of the operator's cpu.fixed_order, for kernels on other devices.
std::set<std::string> every_promise_and_a_twin();
/// The contract of all fixed-order kernels, and its reason.
ToleranceContract fixed_order_contract();

}  // namespace attest::fixed_order
