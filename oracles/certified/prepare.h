// From a problem to the lane kernels' Work: hidden keys left out, rows packed, norms and spans measured.
#pragma once

#include <vector>

#include "oracles/certified/arena.h"
#include "oracles/certified/work.h"

namespace attest::certified {

class Preparation {
 public:
  /// Throws UsageError where a visible row holds NaN or infinity, or more bits than `significand_bits`.
  Preparation(const Lanes& lanes, Tier tier, const GroupProblem& problem, GroupReference& reference);
  const Work& work() const { return work_; }

  Block new_block();
  /// The rows it covers, the keys it sees. Once for each index; threads may do it at once.
  void start(Block& block, int64_t index) const;

 private:
  /// Rows of queries, and where their copies for the lane kernels go; each block's are made when it starts.
  struct Queries {
    const double* rows;
    int64_t width, padded;
    double *panels, *columns;
    void pack(int64_t first, int64_t count) const;
  };
  void find_keys();
  void find_rows();
  Side keys_side(const double* source, int64_t width, const char* name);
  Side queries_side(const double* source, int64_t width, const char* name);
  void prepare_terms();
  void add_sizes(Side& side, int64_t rows);
  void sum_before(Side& side);
  const double* sum_seen(const Side& side);
  void measure(Side& side, const std::vector<int64_t>& from, int64_t tile, const char* name);

  const Lanes& lanes_;
  const Tier tier_;
  const GroupProblem& problem_;
  Arena arena_;
  Work work_;
  std::vector<Queries> queries_;  // q, and dout
  std::vector<int64_t> key_from_, row_from_;  // row of the problem, or −1: zeros
};

}  // namespace attest::certified
