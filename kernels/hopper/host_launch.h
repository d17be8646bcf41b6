// What the host sides of the fused kernels share: the order of work, launches, where rows are stored.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/device/launch.h"
#include "kernels/hopper/fused_kernels.h"

namespace attest::fused {

/// Keys and values of the heads that are worked at once: well within the L2 (50 or 60 MB).
constexpr int64_t kSectionBytes = int64_t{12} << 20;
constexpr int kBlocks = 132;  // of a grid on an H100 or H200; who works when depends on it, nothing else

/// So many that their work, late² · heads / 2, equals the largest unevenness before them: a block each one piece behind.
inline int late_pieces(int64_t heads, int64_t pieces) {
  const double late = std::ceil(pieces * std::sqrt(kBlocks / static_cast<double>(heads * pieces)));
  return static_cast<int>(std::min<double>(late, pieces / 2));
}

/// `heads` a batch element, of which `sharing` read the same keys; `padded`: the head dim as the kernels have it; `ranges` of keys that
/// a block of rows is cut into.
inline WorkList work_of(const AttentionParams& p, int padded, int64_t heads, int64_t sharing, int64_t rows, int rows_a_piece,
                        bool longest_is_last, unsigned* next, int ranges = 1) {
  const int64_t bytes = p.seqlen_kv * padded * 4, together = std::max<int64_t>(1, kSectionBytes / bytes) * sharing;
  const int64_t all = p.batch * heads, pieces = (rows + rows_a_piece - 1) / rows_a_piece * ranges;
  return {.heads = static_cast<int>(all),
          .section_heads = static_cast<int>(std::min(all, together)),
          .pieces = static_cast<int>(pieces),
          .late = p.causal ? late_pieces(all, pieces) : 0,
          .count = static_cast<int>(all * pieces),
          .longest_is_last = longest_is_last,
          .next = next};
}

inline int attribute(cudaDeviceAttr what, int device) {
  int value = 0;
  check_cuda(cudaDeviceGetAttribute(&value, what, device), "cudaDeviceGetAttribute");
  return value;
}

/// One block an SM at most, which take `count` pieces of work.
template <class Args>
void launch(const KernelInfo& kernel, const AttentionParams& p, const Args& args, int count) {
  if (count == 0) return;
  const int blocks = std::min(count, attribute(cudaDevAttrMultiProcessorCount, p.device));
  check_cuda(cudaFuncSetAttribute(kernel.function, cudaFuncAttributeMaxDynamicSharedMemorySize, kernel.shared_bytes),
             kernel.name);
  void* arguments[] = {const_cast<Args*>(&args)};
  check_cuda(cudaLaunchKernel(kernel.function, dim3(blocks), dim3(kernel.threads), arguments, kernel.shared_bytes,
                              static_cast<cudaStream_t>(p.stream)),
             kernel.name);
}

template <class Args>
void launch(const KernelInfo& kernel, const AttentionParams& p, const Args& args) {
  launch(kernel, p, args, args.work.count);
}

inline RowStrides strides_of(int64_t batch, int64_t head, int64_t row) { return {batch, head, row}; }
inline Rows rows_of(const View<void>& x) {
  const bool aligned = reinterpret_cast<uintptr_t>(x.data) % 16 == 0 && (x.batch | x.head | x.row) % 8 == 0;
  return {x.data, strides_of(x.batch, x.head, x.row), aligned};
}

}  // namespace attest::fused
