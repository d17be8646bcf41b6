// The operands as the kernels read them. The copy engine reads rows of 16-byte aligned pieces, and hidden keys must hold zeros
// (0 · NaN is NaN on any matrix unit); what is not so is copied to the workspace first. q is also copied, with the scale's
// sign taken in, where the scale is not positive.
#pragma once

#include <cuda.h>

#include "kernels/hopper/fused.h"

namespace attest::fused {

/// Pieces of the workspace, in order; without memory it only counts.
class Arena {
 public:
  explicit Arena(void* memory) : memory_(static_cast<char*>(memory)) {}
  template <class T>
  T* take(int64_t count) {
    T* p = memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + used_);
    used_ += (count * static_cast<int64_t>(sizeof(T)) + 255) / 256 * 256;
    return p;
  }
  int64_t used() const { return used_; }

 private:
  char* memory_;
  int64_t used_ = 0;
};

struct Operands {
  View<const void> q, k, v, dout;  // with unit inner stride and aligned rows
  const uint32_t* keep = nullptr;  // bits, see Problem
  int keep_words = 0;
};

/// Takes what copies need from `arena`; with memory, launches them on p's stream. Where seqlen_kv is not a multiple of
/// `key_rows`, k and v are copied, too, and end with rows of zeros up to one.
Operands prepare_operands(const AttentionParams& p, Arena& arena, int64_t key_rows = 1);

/// An operand [batch, heads, rows, head_dim].
struct Matrix {
  View<const void> data;
  int64_t heads, rows, head_dim;
};
/// The copy engine's view of an operand for boxes of `box_rows` × 64. What is read once streams from memory 5 % faster in pieces of
/// 128 bytes.
CUtensorMap tensor_map(const AttentionParams& p, const Matrix& x, int box_rows,
                       CUtensorMapL2promotion pieces = CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
/// For boxes of 8·run rows × 64, at multiples of 8·run, whose rows come in another order: row run·r + b as number 8b + r, so that
/// a thread's accumulators of a product with them belong to 2·run consecutive rows. x.rows counts up to the next multiple of `run`.
CUtensorMap interleaved_map(const AttentionParams& p, const Matrix& x, int run);
/// For boxes of rows r, r + 4, r + 8, … × 64, as many as there are of `rows` rows: the same order by four copies, for any x.rows.
CUtensorMap every_fourth_map(const AttentionParams& p, const Matrix& x, int rows);

}  // namespace attest::fused
