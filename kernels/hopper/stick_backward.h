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

/// What forward() and backward() launch; a faulty twin brings one of its own.
struct Kernels {
  KernelInfo (*forward)(ElementType type, int padded_head_dim) = forward_kernel_of;
  KernelInfo (*dq)(ElementType type, int padded_head_dim) = dq_kernel_of;
  KernelInfo (*dkv)(ElementType type, int padded_head_dim) = dkv_kernel_of;
};
void forward(const AttentionParams& p, void* saved, void* workspace, const Kernels& kernels);
void backward(const AttentionParams& p, void* saved, void* workspace, const Kernels& kernels);

}  // namespace attest::stick
