// softmax.cpu.fixed_order: softmax attention in plain C++ and fp32, the host twin of softmax.cuda.fixed_order. Unusual: it
// exists to fix every bit, not to be fast; each sum runs in the one order that kernels/softmax/README.md writes down. Key j
// belongs to leaf j mod 256 for every length, a leaf sums its visible keys ascending, the 256 leaves meet in a halving tree; δ is
// taken relative to the most probable key, so gradients survive saturation. It promises every law.
#include <array>
#include <limits>

#include "kernels/device/attention_tensors.h"
#include "kernels/device/fixed_order_host.h"
#include "kernels/device/fixed_order_math.h"

namespace attest {
namespace {

using fixed_order::HostRow;

constexpr size_t kLeaves = 256;

/// leaf[t] += leaf[t + half] for half = 128, 64, …, 1.
float halving_tree(std::array<float, kLeaves>& leaf) {
  for (size_t half = kLeaves / 2; half > 0; half /= 2)
    for (size_t t = 0; t < half; ++t) leaf[t] += leaf[t + half];
  return leaf[0];
}

template <class Term>
float leaf_sum(const HostRow& row, Term term) {
  std::array<float, kLeaves> leaf{};
  for (const int64_t j : row.visible) leaf[static_cast<size_t>(j) % kLeaves] += term(j);
  return halving_tree(leaf);
}

/// P = e^{z − max} / Σ; lse = max + log Σ. Without a visible key: −inf.
void forward(HostRow& row) {
  float max = -std::numeric_limits<float>::infinity();
  for (const int64_t j : row.visible) max = row.logits[j] > max ? row.logits[j] : max;
  for (const int64_t j : row.visible) row.weights[j] = fixed_order::exp(row.logits[j] - max);
  const float sum = leaf_sum(row, [&](int64_t j) { return row.weights[j]; });
  for (const int64_t j : row.visible) row.weights[j] = row.weights[j] / sum;
  row.lse = max + fixed_order::log(sum);
}

/// The first of the most probable keys.
int64_t likeliest_key(const HostRow& row) {
  int64_t best = row.visible.front();
  for (const int64_t j : row.visible)
    if (row.weights[j] > row.weights[best]) best = j;
  return best;
}

/// d = dP − dP at the likeliest key; dz = P·((d − Σ P·d) + dlse).
void backward(HostRow& row, const float* dlse) {
  if (row.visible.empty()) return;
  const float base = row.dweights[likeliest_key(row)];
  const float delta = leaf_sum(row, [&](int64_t j) { return row.weights[j] * (row.dweights[j] - base); });
  for (const int64_t j : row.visible) {
    const float centred = (row.dweights[j] - base) - delta;
    row.dlogits[j] = row.weights[j] * (dlse == nullptr ? centred : centred + *dlse);
  }
}

Outputs run(const Inputs& in) {
  const Outputs out = fixed_order::fresh_outputs(in, Device::kCpu);
  fixed_order::run_on_host(fixed_order::params_of(in, out), {.forward = forward, .backward = backward});
  return out;
}

const Register<KernelVariant> registered{{
    .name = "softmax.cpu.fixed_order",
    .op = Op::kSoftmax,
    .device = Device::kCpu,
    .summary = "plain fp32 on the CPU in a fixed order of sums, the host twin of softmax.cuda.fixed_order",
    .domain = {.ops = {Op::kSoftmax}},
    .contract = fixed_order::fixed_order_contract(),
    .promises = fixed_order::every_promise(),
    .run = run,
}};

}  // namespace
}  // namespace attest
