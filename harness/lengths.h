// How long the sequences of a case are, and what tensors hold them: drawn from its seed and sizes, in integers alone.
#pragma once

#include <vector>

#include "harness/case.h"

namespace attest {

/// None for kWhole. Lengths 0, 1, around the edges of tiles and as long as may be are frequent; so are n_q = Sq in a cache and
/// n_q = n_kv where packed sequences have Sq = Skv. Packed ones have a query and a key in all, at least. Those of a case with a
/// smaller batch are the first of the larger one's, but for that.
std::vector<Sequence> sequences_of(const Case& c);

/// `c.problem`, but packed with one batch element and as many rows as there are: those of the sequences and, in a quarter of the
/// cases, up to three more that belong to none.
AttentionProblem tensors_of(const Case& c, const std::vector<Sequence>& sequences);

/// The batch element and the position that row `row` of batch element `batch` has in the case's data (harness/fill.h): those of
/// its sequence, packed.
struct DataRow {
  int64_t batch = 0, position = 0;
  bool inside = true;  // it belongs to a sequence
};
std::vector<DataRow> query_rows(const Case& c, const AttentionProblem& tensors, const std::vector<Sequence>& sequences);
std::vector<DataRow> key_rows(const Case& c, const AttentionProblem& tensors, const std::vector<Sequence>& sequences);

}  // namespace attest
