// Inputs made from other inputs, for laws that compare a whole with its parts. All keep the device; views where they can.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/tensors.h"

namespace attest {

/// Batch elements [begin, begin + count).
Inputs slice_batch(const Inputs& in, int64_t begin, int64_t count);
/// Queries [begin, begin + count) with the keys a prefill of that chunk would have: keys [0, p_last] when causal,
/// all keys when not. Needs Skv − Sq + begin + count ≥ 1.
Inputs slice_queries(const Inputs& in, int64_t begin, int64_t count);
/// Keys [0, count), queries unchanged: only legal where the position of no query moves; used with causal masks by
/// dropping as many queries at the end.
Inputs first_keys(const Inputs& in, int64_t count);
/// The batch elements in the order `order` (an element may come twice).
Inputs gather_batch(const Inputs& in, const std::vector<int64_t>& order);
/// k and v as views of a buffer of `capacity` ≥ Skv keys per head whose tail holds NaN.
Inputs in_cache(const Inputs& in, int64_t capacity);
/// Every padded key's k and v replaced by `value`.
Inputs fill_padded_keys(const Inputs& in, double value);
/// Contiguous copies of every tensor.
Inputs contiguous(const Inputs& in);

}  // namespace attest
