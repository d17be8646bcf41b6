// The products of fixed_order_products.h as launches on p.stream of p.device; each checks its launch. fp16 and bf16.
#pragma once

#include "kernels/device/attention_params.h"

namespace attest::fixed_order {

void launch_logits(const AttentionParams& p);    // q, k → logits
void launch_out(const AttentionParams& p);       // weights, v → out
void launch_dweights(const AttentionParams& p);  // dout, v → dlogits (holding dP)
void launch_dq(const AttentionParams& p);        // dlogits (holding dz), k → dq
void launch_dk(const AttentionParams& p);        // dlogits, q → dk
void launch_dv(const AttentionParams& p);        // weights, dout → dv

}  // namespace attest::fixed_order
