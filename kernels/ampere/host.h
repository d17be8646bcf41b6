// What the host sides of both operators share: operands as the kernels read them, the mask as bits, rows that no sequence has.
#pragma once

#include <optional>
#include <string>

#include "kernels/ampere/kernels.h"
#include "kernels/ampere/lengths.h"
#include "kernels/hopper/fused_operands.h"
#include "kernels/hopper/host_launch.h"

namespace attest::portable {

std::optional<std::string> unsupported_reason(const AttentionParams& p);

/// The mask's bits, see Problem.
struct Keep {
  const uint32_t* bits = nullptr;
  int words = 0;
};
Keep take_keep(const AttentionParams& p, fused::Arena& arena);
/// Fills what take_keep took, on p's stream.
void pack_keep(const AttentionParams& p, const Keep& keep);

Problem problem_of(const AttentionParams& p, const Keep& keep, const Lengths& lengths);
Operand operand_of(const AttentionParams& p, const View<const void>& x, int64_t heads, int64_t rows, int64_t columns);
inline Operand q_of(const AttentionParams& p) { return operand_of(p, p.q, p.num_heads_q, p.seqlen_q, p.head_dim); }
inline Operand k_of(const AttentionParams& p) { return operand_of(p, p.k, p.num_heads_kv, p.seqlen_kv, p.head_dim); }
inline Operand v_of(const AttentionParams& p) { return operand_of(p, p.v, p.num_heads_kv, p.seqlen_kv, p.head_dim_v); }
inline Operand dout_of(const AttentionParams& p) { return operand_of(p, p.dout, p.num_heads_q, p.seqlen_q, p.head_dim_v); }
inline RowValues row_values(const View<const float>& x) { return {x.data, fused::strides_of(x.batch, x.head, x.row)}; }
inline RowValues row_values(const View<float>& x) { return {x.data, fused::strides_of(x.batch, x.head, x.row)}; }
inline int chunks_of(int64_t columns) { return static_cast<int>((columns + kColumns - 1) / kColumns); }

/// Operands, problem, outputs and scales of a backward; the operator adds its own.
BackwardArgs backward_args(const AttentionParams& p, const Keep& keep, const Lengths& lengths);

/// Rows of outputs that belong to no sequence: out 0 and lse `blank`; gradients 0. Nothing without lengths.
void blank_forward(const AttentionParams& p, const Lengths& lengths, float blank);
void blank_backward(const AttentionParams& p, const Lengths& lengths);

}  // namespace attest::portable
