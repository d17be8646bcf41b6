// The part of a host twin that both operators share: dot products and weighted sums in the written order. An operator adds
// what happens within one row of logits.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/device/attention_params.h"

namespace attest::fixed_order {

/// One query's row. The arrays are indexed by absolute key; only the entries of visible keys mean anything.
struct HostRow {
  std::vector<int64_t> visible;  // ascending
  std::vector<float> logits;     // z
  std::vector<float> weights;    // P or A
  std::vector<float> dweights;   // dP = dout·v
  std::vector<float> dlogits;    // dz
  float lse = 0.0F;              // lse or rem
};

struct RowRule {
  /// logits → weights, lse.
  std::function<void(HostRow&)> forward;
  /// logits, weights, lse, dweights and the gradient of lse or rem (null: none) → dlogits.
  std::function<void(HostRow&, const float* dlse)> backward;
};

/// Fills every output of `p`. Order of the sums, all from +0, a product and then an addition, hidden keys left out:
/// q·k and dout·v over dims ascending; out and dq over keys ascending; dk and dv over the group's query heads ascending and
/// within each over queries ascending. z = scale·(q·k); dq and dk are multiplied by the scale after their sum.
void run_on_host(const AttentionParams& p, const RowRule& rule);

}  // namespace attest::fixed_order
