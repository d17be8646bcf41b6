// Inputs made from other inputs, for laws that compare a whole with its parts. All keep the device; views where they can.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/tensors.h"

namespace attest {

/// Batch elements [begin, begin + count); of packed inputs, sequences, which must have a query and a key in all.
Inputs slice_batch(const Inputs& in, int64_t begin, int64_t count);
/// Queries [begin, begin + count) with the keys a prefill of that chunk would have: keys [0, p_last] when causal,
/// all keys when not. Needs Skv − Sq + begin + count ≥ 1. Of whole batches alone.
Inputs slice_queries(const Inputs& in, int64_t begin, int64_t count);
/// Rows [begin, begin + count) of the queries or of the keys, and what is left of the sequences there; the queries of a whole
/// batch then stand elsewhere.
Inputs narrow_queries(const Inputs& in, int64_t begin, int64_t count);
Inputs narrow_keys(const Inputs& in, int64_t begin, int64_t count);
/// Keys [0, count), queries unchanged: only legal where the position of no query moves; used with causal masks by
/// dropping as many queries at the end.
Inputs first_keys(const Inputs& in, int64_t count);
/// The batch elements in the order `order` (an element may come twice). Not of packed inputs.
Inputs gather_batch(const Inputs& in, const std::vector<int64_t>& order);
/// k and v as views of a buffer of `capacity` ≥ Skv keys per head whose tail holds NaN.
Inputs in_cache(const Inputs& in, int64_t capacity);
/// Every padded key's k and v replaced by `value`.
Inputs fill_padded_keys(const Inputs& in, double value);
/// Every row that belongs to no sequence replaced by `value`, in q, k, v, dout and dlse.
Inputs fill_outside(const Inputs& in, double value);
/// Rows that belong to no sequence: bool [B, Sq] and [B, Skv], on the CPU.
struct Outside {
  at::Tensor queries, keys;
};
Outside outside_sequences(const Inputs& in);
/// Contiguous copies of every tensor.
Inputs contiguous(const Inputs& in);

}  // namespace attest
