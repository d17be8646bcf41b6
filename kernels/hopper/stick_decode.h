// stickbreaking.cuda.decode without the harness: the forward of up to 16 queries a sequence on a KV cache, split over keys, and
// appending to the cache. Fill an AttentionParams as for stick.h, without gradients: k and v are the caches, [batch, num_heads_kv,
// capacity, head_dim] by their strides, and seqlen_kv is their capacity or any smaller bound of the lengths (the tighter, the less
// idle work). Query i of batch element b stands at length − seqlen_q + i. Everything runs on p.stream of p.device; nothing is allocated,
// nothing synchronises, CUDA graphs can capture it, and how work is cut depends on shapes alone.
//
// Bits: a row's are those that forward() of stick.h gives it. What lies in the cache past a length, or under a hidden key, may hold
// anything, NaN too.
#pragma once

#include "kernels/hopper/device_errors.h"
#include "kernels/hopper/stick.h"

namespace attest::stick {

constexpr int64_t kMostDecodeQueries = 16;  // of a sequence

struct DecodeLengths {
  const int32_t* seqlens_kv = nullptr;  // on the device, [batch], read when the kernels run; null: seqlen_kv each
  uint32_t* errors = nullptr;           // DeviceErrors::flag(), which hears of lengths outside [0, seqlen_kv]; null: nobody does
};

/// Why decode() doesn't take `p` on this device, e.g. "17 queries a sequence: at most 16 are supported"; nothing when it does. Beside
/// what stick.h refuses: more than 16 queries, gradients.
std::optional<std::string> decode_unsupported_reason(const AttentionParams& p);

/// Exactly: 256-byte multiples of 4·N·S·⌈head_dim_v/8⌉·8 and 4·N·S, with N = batch·num_heads_q·seqlen_q rows and S = ⌈seqlen_kv/512⌉
/// segments; and, of each operand that has to be copied, 2·⌈head_dim/8⌉·8 bytes a row: q where the scale is not positive, any whose
/// rows are not 16-byte aligned with unit inner stride (a cache that is so costs more to copy than to read). It needs no clearing.
int64_t decode_workspace_bytes(const AttentionParams& p);

/// out and rem. A length outside [0, seqlen_kv] is taken for the nearer end and raises the flag. Throws LaunchError.
void decode(const AttentionParams& p, const DecodeLengths& lengths, void* workspace);

/// Rows to be appended: k [batch, heads, rows, head_dim], v with head_dim_v, 16-bit elements; any strides.
struct AppendParams {
  int64_t batch = 1, heads = 1, rows = 1, head_dim = 1, head_dim_v = 1, capacity = 1;
  View<const void> k, v;
  View<void> k_cache, v_cache;
  int32_t* seqlens_kv = nullptr;  // on the device, [batch]; each advances by `rows`
  uint32_t* errors = nullptr;     // as in DecodeLengths
  int device = 0;
  void* stream = nullptr;         // a cudaStream_t
};

/// Writes the rows of batch element b to its cache at seqlens_kv[b] and on. Where they would pass the capacity, or the length is
/// negative, nothing of b is written, its length stays, and the flag is raised. Throws LaunchError.
void append_to_cache(const AppendParams& p);

}  // namespace attest::stick
