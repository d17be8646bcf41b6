// Sequences of different lengths, each launched as a problem of its own; and what rows outside of them get. See sequences.h.
#include "kernels/hopper/sequences.h"

#include <algorithm>
#include <cmath>

#include "kernels/device/launch.h"

namespace attest::fused {
namespace {

constexpr int kThreads = 256;

/// Rows [begin, begin + count) of every head of a batch element.
struct Gap {
  int64_t batch, begin, count;
};

/// `head_dim` elements of each row become 0; or, where head_dim is 0, the row's fp32 value becomes `value`.
struct Fill {
  View<void> to;
  Gap gap;
  int64_t heads, head_dim;
  float value;
};

__global__ void __launch_bounds__(kThreads) fill_rows(const __grid_constant__ Fill f) {
  const int64_t dims = f.head_dim == 0 ? 1 : f.head_dim, all = f.heads * f.gap.count * dims;
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < all; i += gridDim.x * int64_t{kThreads}) {
    const int64_t row = f.gap.begin + i / dims % f.gap.count, head = i / dims / f.gap.count;
    const int64_t at = f.to.at(f.gap.batch, head, row, i % dims);
    if (f.head_dim == 0)
      static_cast<float*>(f.to.data)[at] = f.value;
    else
      static_cast<uint16_t*>(f.to.data)[at] = 0;
  }
}

void fill(const AttentionParams& p, const Fill& f) {
  const int64_t elements = f.heads * f.gap.count * std::max<int64_t>(1, f.head_dim);
  if (elements == 0) return;
  fill_rows<<<grid_of(std::min<int64_t>((elements + kThreads - 1) / kThreads, 132 * 16)), kThreads, 0,
              static_cast<cudaStream_t>(p.stream)>>>(f);
  check_launch("fill_rows");
}

/// The rows of `rows` a batch element that no running sequence owns.
std::vector<Gap> gaps_of(const AttentionParams& p, const Sequences& sequences, int64_t rows, int64_t Sequence::*begin,
                         int64_t Sequence::*count) {
  std::vector<Gap> gaps;
  auto next = sequences.begin();
  for (int64_t batch = 0; batch < p.batch; ++batch) {
    int64_t end = 0;
    for (; next != sequences.end() && next->batch == batch; ++next) {
      if (!next->runs()) continue;
      if (*next.*begin > end) gaps.push_back({batch, end, *next.*begin - end});
      end = *next.*begin + *next.*count;
    }
    if (end < rows) gaps.push_back({batch, end, rows - end});
  }
  return gaps;
}
std::vector<Gap> query_gaps(const AttentionParams& p, const Sequences& s) {
  return gaps_of(p, s, p.seqlen_q, &Sequence::q_begin, &Sequence::n_q);
}
std::vector<Gap> key_gaps(const AttentionParams& p, const Sequences& s) {
  return gaps_of(p, s, p.seqlen_kv, &Sequence::kv_begin, &Sequence::n_kv);
}

/// What is wrong with rows [begin, begin + count) after those up to `end`, in a buffer of `rows`.
std::optional<std::string> rows_invalid(int64_t begin, int64_t count, int64_t end, int64_t rows, const char* what) {
  const auto text = [&](const std::string& verb, int64_t n) { return verb + " " + what + " " + std::to_string(n); };
  if (count < 0) return "has " + std::to_string(count) + " " + what + " rows";
  if (begin < end) return text("begins at", begin) + ", before the end of the one before it";
  if (begin + count > rows) return text("ends at", begin + count) + ", past the buffer's " + std::to_string(rows) + " rows";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> sequences_invalid(const AttentionParams& p, const Sequences& sequences) {
  int64_t batch = 0, queries = 0, keys = 0;
  for (size_t n = 0; n < sequences.size(); ++n) {
    const Sequence& s = sequences[n];
    const std::string name = "sequence " + std::to_string(n) + " ";
    if (s.batch < batch || s.batch >= p.batch) return name + "is of batch element " + std::to_string(s.batch);
    if (s.batch > batch) queries = keys = 0;
    if (const auto why = rows_invalid(s.q_begin, s.n_q, queries, p.seqlen_q, "query")) return name + *why;
    if (const auto why = rows_invalid(s.kv_begin, s.n_kv, keys, p.seqlen_kv, "key")) return name + *why;
    batch = s.batch, queries = s.q_begin + s.n_q, keys = s.kv_begin + s.n_kv;
  }
  return std::nullopt;
}

AttentionParams sequence_of(const AttentionParams& whole, const Sequence& s) {
  AttentionParams p = whole;
  p.batch = 1, p.seqlen_q = s.n_q, p.seqlen_kv = s.n_kv;
  const auto move = [&](auto& x, int64_t row, int64_t bytes) {
    using Pointer = decltype(x.data);
    if (x.data != nullptr) x.data = reinterpret_cast<Pointer>(reinterpret_cast<uintptr_t>(x.data) + bytes * x.at(s.batch, 0, row));
  };
  move(p.q, s.q_begin, 2), move(p.dout, s.q_begin, 2), move(p.out, s.q_begin, 2), move(p.dq, s.q_begin, 2);
  move(p.k, s.kv_begin, 2), move(p.v, s.kv_begin, 2), move(p.dk, s.kv_begin, 2), move(p.dv, s.kv_begin, 2);
  move(p.lse, s.q_begin, 4), move(p.dlse, s.q_begin, 4);
  if (p.keep != nullptr) p.keep += s.batch * p.keep_batch + s.kv_begin * p.keep_key;
  return p;
}

void fill_outside_forward(const AttentionParams& p, const Sequences& sequences, float no_key) {
  const CudaDevice device(p.device);
  const View<void> lse{p.lse.data, p.lse.batch, p.lse.head, p.lse.row, 0};
  for (const Gap& gap : query_gaps(p, sequences)) {
    fill(p, {p.out, gap, p.num_heads_q, p.head_dim_v, 0.0F});
    fill(p, {lse, gap, p.num_heads_q, 0, no_key});
  }
}
void fill_outside_backward(const AttentionParams& p, const Sequences& sequences) {
  const CudaDevice device(p.device);
  for (const Gap& gap : query_gaps(p, sequences)) fill(p, {p.dq, gap, p.num_heads_q, p.head_dim, 0.0F});
  for (const Gap& gap : key_gaps(p, sequences)) {
    fill(p, {p.dk, gap, p.num_heads_kv, p.head_dim, 0.0F});
    fill(p, {p.dv, gap, p.num_heads_kv, p.head_dim_v, 0.0F});
  }
}

namespace {

/// The first reason that `reason` has against a sequence, or against the list.
template <class Reason>
std::optional<std::string> first_reason(const AttentionParams& p, const Sequences& sequences, Reason reason) {
  if (const auto why = sequences_invalid(p, sequences)) return why;
  for (const Sequence& s : sequences)
    if (s.runs())
      if (const auto why = reason(sequence_of(p, s))) return why;
  return std::nullopt;
}
/// 256 bytes where nothing runs: a workspace is never empty, so that it can be cleared.
template <class Bytes>
int64_t most_bytes(const AttentionParams& p, const Sequences& sequences, Bytes bytes) {
  int64_t most = 256;
  for (const Sequence& s : sequences)
    if (s.runs()) most = std::max(most, bytes(sequence_of(p, s)));
  return most;
}

}  // namespace

std::optional<std::string> unsupported_reason(const AttentionParams& p, const Sequences& sequences) {
  return first_reason(p, sequences, [](const AttentionParams& one) { return unsupported_reason(one); });
}
int64_t workspace_bytes(const AttentionParams& p, const Sequences& sequences) {
  return most_bytes(p, sequences, [](const AttentionParams& one) { return workspace_bytes(one); });
}

void forward(const AttentionParams& p, const Sequences& sequences, int32_t* dominant, void* workspace) {
  if (const auto why = unsupported_reason(p, sequences)) throw LaunchError("softmax.cuda.fused: " + *why);
  for (const Sequence& s : sequences) {
    if (!s.runs()) continue;
    forward(sequence_of(p, s), dominant, workspace);
    if (dominant != nullptr) dominant += p.num_heads_q * s.n_q;
  }
  fill_outside_forward(p, sequences, -INFINITY);
}

void backward(const AttentionParams& p, const Sequences& sequences, const int32_t* dominant, void* workspace) {
  if (const auto why = unsupported_reason(p, sequences)) throw LaunchError("softmax.cuda.fused: " + *why);
  for (const Sequence& s : sequences) {
    if (!s.runs()) continue;
    backward(sequence_of(p, s), dominant, workspace);
    dominant += p.num_heads_q * s.n_q;
  }
  fill_outside_backward(p, sequences);
}

}  // namespace attest::fused

namespace attest::stick {

using fused::Sequence;
using fused::sequence_of;

std::optional<std::string> unsupported_reason(const AttentionParams& p, const Sequences& sequences) {
  return fused::first_reason(p, sequences, [](const AttentionParams& one) { return unsupported_reason(one); });
}
int64_t workspace_bytes(const AttentionParams& p, const Sequences& sequences) {
  return fused::most_bytes(p, sequences, [](const AttentionParams& one) { return workspace_bytes(one); });
}
int64_t saved_bytes(const AttentionParams& p, const Sequences& sequences) {
  int64_t bytes = 0;
  for (const Sequence& s : sequences)
    if (s.runs()) bytes += saved_bytes(sequence_of(p, s));
  return bytes;
}

namespace {

/// `call(problem, its part of saved or null)` for each sequence that runs.
template <class Call>
void each_sequence(const AttentionParams& p, const Sequences& sequences, void* saved, Call call) {
  if (const auto why = stick::unsupported_reason(p, sequences)) throw LaunchError("stickbreaking.cuda.fused: " + *why);
  int64_t at = 0;
  for (const Sequence& s : sequences) {
    if (!s.runs()) continue;
    const AttentionParams one = sequence_of(p, s);
    const int64_t bytes = saved_bytes(one);
    call(one, saved == nullptr || bytes == 0 ? nullptr : static_cast<char*>(saved) + at);
    at += bytes;
  }
}

}  // namespace

void forward(const AttentionParams& p, const Sequences& sequences, void* saved, void* workspace) {
  each_sequence(p, sequences, saved, [&](const AttentionParams& one, void* mine) { forward(one, mine, workspace); });
  fused::fill_outside_forward(p, sequences, 1.0F);
}

void backward(const AttentionParams& p, const Sequences& sequences, void* saved, void* workspace) {
  each_sequence(p, sequences, saved, [&](const AttentionParams& one, void* mine) { backward(one, mine, workspace); });
  fused::fill_outside_backward(p, sequences);
}

}  // namespace attest::stick
