// Which cells a campaign has, and which cases it gives them: a function of the options and the registries alone.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/campaign.h"
#include "harness/property.h"

namespace attest {

/// A cell with its records and the intersection of its domains.
struct PlannedCell {
  Cell cell;
  const KernelVariant* variant = nullptr;
  const Property* property = nullptr;
  CaseDomain domain;                       // variant ∩ property (what shrinking may use)
  std::optional<std::string> impossible;   // why no case can exist for it; then it is *unsupported* without a run
};

class Plan {
 public:
  /// Throws UsageError for names that are not registered.
  Plan(const CampaignOptions& options, bool has_gpu);

  /// Variants in order, `returns` first among the properties of each.
  const std::vector<PlannedCell>& cells() const { return cells_; }
  bool needs_cuda() const { return needs_cuda_; }
  /// Fixtures first, then generated cases, one for each operator in turn.
  Source source(int64_t number) const;
  /// The number of sources; with a budget, as many as fit in it (INT64_MAX).
  int64_t size() const { return size_; }
  /// The cells that a source is for, as indices into cells().
  std::vector<size_t> cells_for(const Source& source) const;

 private:
  void add_cells(bool has_gpu);
  void add_focuses();
  CaseDomain affordable(Op op) const;

  CampaignOptions options_;
  std::vector<PlannedCell> cells_;
  std::vector<Op> ops_;                             // those for which some cell is possible
  std::map<Op, std::vector<CaseDomain>> focuses_;   // domains that cases are drawn from, in turn
  bool needs_cuda_ = false;
  int64_t size_ = 0;
};

}  // namespace attest
