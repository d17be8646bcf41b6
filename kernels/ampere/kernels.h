// What the host gives each portable kernel. Launches throw LaunchError; a grid is one-dimensional.
#pragma once

#include "kernels/ampere/problem.h"
#include "kernels/device/attention_params.h"

namespace attest::portable {

using fixed_order::AttentionParams;
using fixed_order::ElementType;
using fixed_order::View;

/// fp32 [batch, head, row]; data null: zeros.
struct RowValues {
  const float* data;
  RowStrides strides;
};

struct ForwardArgs {
  Operand q, k, v;
  Problem problem;
  Rows out;    // data null (stick-breaking): only what is saved is wanted
  float* lse;  // or rem
  RowStrides lse_strides;
  int32_t* dominant;  // softmax: [batch, heads, seqlen_q], see kernels/hopper/fused.h; may be null
  float* sticks;      // stick-breaking, as in BackwardArgs; null: no backward will follow
  int* first_tile;
  int key_tiles;
  int chunks;  // of 128 columns of out
};

/// Softmax, of each query, fp32 [batch · heads][seqlen_q]; see kernels/hopper/fused_backward.h. `shift` is dlse − σ/ρ.
struct QueryValues {
  float *lse2, *reference, *shift;
};

struct BackwardArgs {
  Operand q, k, v, dout;
  Problem problem;
  QueryValues values;  // softmax
  RowValues lse, dlse; // or rem and its gradient
  Rows dq, dk, dv;
  float dq_scale, dk_scale;
  float *sticks, *far;  // stick-breaking: fp32 [batch · heads][key_tiles][seqlen_q], the stick before a tile's nearest key, F before its farthest
  int* first_tile;      // [batch · heads][seqlen_q], at every 64th query of a sequence: the farthest tile of keys that the forward visited
  int key_tiles;
  int chunks;           // of 128 columns of what the kernel makes
};

struct ValuesArgs {
  Operand v, dout;
  View<const void> out;
  RowValues lse, dlse;
  const int32_t* dominant;
  Problem problem;
  QueryValues values;
};

void launch_softmax_forward(const AttentionParams& p, const ForwardArgs& args);
void launch_softmax_values(const AttentionParams& p, const ValuesArgs& args);
void launch_softmax_dq(const AttentionParams& p, const BackwardArgs& args);
void launch_softmax_dkv(const AttentionParams& p, const BackwardArgs& args);
void launch_stick_forward(const AttentionParams& p, const ForwardArgs& args);
void launch_stick_dq(const AttentionParams& p, const BackwardArgs& args);
void launch_stick_dkv(const AttentionParams& p, const BackwardArgs& args);

}  // namespace attest::portable
