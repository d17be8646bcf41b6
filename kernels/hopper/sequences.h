// Sequences of different lengths in the tensors of one call: packed one after another, or one in each batch element's buffers. Both
// fused operators take them by the calls below, whose lengths are the host's: each sequence is launched as a problem of its own, in
// place, so its bits are those that it has alone, and no kernel is given a neighbour's row. A CUDA graph keeps the lengths it was
// captured with. Launches follow one another on p's stream: many short sequences leave most of the device idle.
#pragma once

#include <vector>

#include "kernels/hopper/fused.h"
#include "kernels/hopper/stick.h"

namespace attest::fused {

/// Queries [q_begin, q_begin + n_q) and keys [kv_begin, kv_begin + n_kv) of a batch element; query i stands at n_kv − n_q + i.
struct Sequence {
  int64_t batch = 0, q_begin = 0, n_q = 0, kv_begin = 0, n_kv = 0;
  bool runs() const { return n_q > 0 && n_kv > 0; }
};
using Sequences = std::vector<Sequence>;

/// Why these are no sequences of p's tensors, e.g. "sequence 2 begins at query 5, before the end of the one before it", or nothing.
/// They are in ascending order of batch element, queries and keys, and share no row.
std::optional<std::string> sequences_invalid(const AttentionParams& p, const Sequences& sequences);

/// Sequence `s` of p as a problem of its own; s.runs().
AttentionParams sequence_of(const AttentionParams& p, const Sequence& s);

/// Rows that belong to no sequence, or to one without queries or without keys: out 0 and lse `no_key`, or dq, dk and dv 0.
void fill_outside_forward(const AttentionParams& p, const Sequences& sequences, float no_key);
void fill_outside_backward(const AttentionParams& p, const Sequences& sequences);

/// As those of fused.h, for p's sequences. Calls throw LaunchError where unsupported_reason() gives one. The workspace must be
/// cleared once (clear_workspace); `dominant` has p.num_rows() entries, of which each sequence takes the next num_heads_q · n_q.
std::optional<std::string> unsupported_reason(const AttentionParams& p, const Sequences& sequences);
int64_t workspace_bytes(const AttentionParams& p, const Sequences& sequences);
void forward(const AttentionParams& p, const Sequences& sequences, int32_t* dominant, void* workspace);
void backward(const AttentionParams& p, const Sequences& sequences, const int32_t* dominant, void* workspace);

}  // namespace attest::fused

namespace attest::stick {

using fused::Sequences;

/// As those of stick.h, for p's sequences. `saved`: each sequence's saved_bytes() after another.
std::optional<std::string> unsupported_reason(const AttentionParams& p, const Sequences& sequences);
int64_t workspace_bytes(const AttentionParams& p, const Sequences& sequences);
int64_t saved_bytes(const AttentionParams& p, const Sequences& sequences);
void forward(const AttentionParams& p, const Sequences& sequences, void* saved, void* workspace);
void backward(const AttentionParams& p, const Sequences& sequences, void* saved, void* workspace);

}  // namespace attest::stick
