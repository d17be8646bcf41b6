// What the backward kernels of stick-breaking are given.
#pragma once

#include "kernels/hopper/stick_kernels.h"

namespace attest::stick {

/// rem or its gradient; data null: zeros.
struct RowValues {
  const float* data;
  RowStrides strides;
};

struct BackwardArgs {
  CUtensorMap q, k, v, dout;
  Problem problem;
  WorkList work;
  Saved saved;
  RowValues rem, drem;
  Rows dq, dk, dv;
  float dq_scale, dk_scale;
};

KernelInfo dq_kernel_of(ElementType type, int padded_head_dim);
KernelInfo dkv_kernel_of(ElementType type, int padded_head_dim);

}  // namespace attest::stick
