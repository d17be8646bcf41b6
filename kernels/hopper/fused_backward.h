// What the backward kernels are given. Per query, fp32 [batch · heads][padded_rows], padded_rows a multiple of 128:
//   lse2       lse · log2 e; +∞ for rows past the end or without a visible key, whose weights then are 0
//   reference  subtracted from every dP of the row: the dominant key's dP, else dout·out
//   shift      dlse; the kernel of dq makes it dlse − Σ P d / Σ P with d = dP − reference, so that dz = P (d + shift)
#pragma once

#include "kernels/hopper/fused_kernels.h"

namespace attest::fused {

struct RowValues {
  float *lse2, *reference, *shift;
  int padded_rows;
};

struct BackwardArgs {
  CUtensorMap q, k, v, dout;
  Problem problem;
  WorkList work;
  RowValues rows;
  Rows dq, dk, dv;
  float dq_scale, dk_scale;
};

KernelInfo dq_kernel_of(ElementType type, int padded_head_dim);
KernelInfo dkv_kernel_of(ElementType type, int padded_head_dim);
constexpr int kDqKeyTile = 64;  // of the kernel of dq
constexpr int kQueryTile = 64;  // of the kernel of dk and dv

/// Fills rows.lse2, reference and shift (with dlse) of every row, padded ones included.
struct RowsArgs {
  View<const void> v, dout;
  View<void> out;
  View<float> lse;
  View<const float> dlse;
  const int32_t* dominant;
  Problem problem;
  RowValues rows;
};
void launch_rows(const AttentionParams& p, const RowsArgs& args);

/// What forward() and backward() launch; a faulty twin brings one of its own.
struct Kernels {
  KernelInfo (*forward)(ElementType type, int padded_head_dim) = forward_kernel_of;
  void (*rows)(const AttentionParams& p, const RowsArgs& args) = launch_rows;
  KernelInfo (*dq)(ElementType type, int padded_head_dim) = dq_kernel_of;
  KernelInfo (*dkv)(ElementType type, int padded_head_dim) = dkv_kernel_of;
};
void forward(const AttentionParams& p, int32_t* dominant, void* workspace, const Kernels& kernels);
void backward(const AttentionParams& p, const int32_t* dominant, void* workspace, const Kernels& kernels);

}  // namespace attest::fused
