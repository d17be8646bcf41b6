// The verdict table: one grid an operator, laws down, variants across; what the text and Markdown reports have in common.
#pragma once

#include <string>
#include <vector>

#include "harness/campaign.h"

namespace attest {

struct Grid {
  std::string op;
  std::vector<std::string> columns;             // variant names without the operator, e.g. cpu.fixed_order
  struct Row {
    std::string law;                            // without .forward / .gradients
    std::vector<std::string> cells;             // "pass", "FAILS", or "pass | not promised" (forward | gradients)
  };
  std::vector<Row> rows;
  std::vector<std::string> needing_gpu;         // variants left out since there is no GPU here
};

std::vector<Grid> grids(const CampaignResult& result);

/// One word or two for a cell: pass, FAILS, CRASHED, TIMED OUT, …; lower case never means that a kernel is to blame.
std::string cell_text(const CellResult& cell);

/// Where the worst element is, what it is and should be: five lines.
std::string comparison_text(const Comparison& c);

/// The block that describes a counterexample (DESIGN §6), several lines.
std::string counterexample_text(const CellResult& cell);

/// How long it took and where: oracle, kernels, harness; how fast the oracle was and how often a verdict needed its next
/// tier. Two lines.
std::string effort_text(const CampaignResult& result);

/// "1 kernel is wrong", "all passed", …, with counts; and the exit code that goes with it.
std::string conclusion(const CampaignResult& result);
int exit_code(const CampaignResult& result);

}  // namespace attest
