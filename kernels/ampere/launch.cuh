// Launching a portable kernel: its shared memory, its grid, the check afterwards.
#pragma once

#include "kernels/ampere/kernels.h"
#include "kernels/device/launch.h"

namespace attest::portable {

/// An element type and how many columns of an output a block makes: what a kernel is made for.
template <class Element, int kWidth>
struct Instance {};

/// `f(Instance)` of the one for outputs of up to `columns` columns.
template <class F>
void choose(ElementType type, int columns, F f) {
  const bool half = type == ElementType::kFloat16;
  if (columns <= 64) return half ? f(Instance<__half, 64>()) : f(Instance<__nv_bfloat16, 64>());
  return half ? f(Instance<__half, 128>()) : f(Instance<__nv_bfloat16, 128>());
}

template <class Args>
void launch(void (*kernel)(Args), const char* name, const AttentionParams& p, const Args& args, int64_t blocks, int shared_bytes) {
  if (blocks == 0) return;
  const void* function = reinterpret_cast<const void*>(kernel);
  check_cuda(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes), name);
  kernel<<<static_cast<unsigned>(blocks), kThreads, shared_bytes, static_cast<cudaStream_t>(p.stream)>>>(args);
  check_launch(name);
}

inline int64_t tiles_of(int64_t rows) { return (rows + kTile - 1) / kTile; }

}  // namespace attest::portable
