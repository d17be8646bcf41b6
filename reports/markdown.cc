// The tolerance-contract report, in Markdown.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>

#include "harness/variant.h"
#include "reports/grid.h"
#include "reports/report.h"

namespace attest {
namespace {

std::string row(const std::vector<std::string>& cells) { return fmt::format("| {} |\n", fmt::join(cells, " | ")); }

/// A bar inside a cell would end it.
std::string escaped(std::string text) {
  for (size_t at = 0; (at = text.find(" | ", at)) != std::string::npos; at += 3) text.replace(at, 3, " / ");
  return text;
}

std::string verdict_table(const Grid& grid) {
  std::vector<std::string> head{grid.op}, rule{"---"};
  for (const std::string& column : grid.columns) {
    head.push_back(column);
    rule.push_back("---");
  }
  std::string text = row(head) + row(rule);
  for (const Grid::Row& r : grid.rows) {
    std::vector<std::string> cells{r.law};
    for (const std::string& c : r.cells) cells.push_back(escaped(c));
    text += row(cells);
  }
  return text + "\n";
}

/// What each variant was held to, and the largest error ÷ bound it reached while passing.
std::string contracts(const CampaignResult& result) {
  std::string text = row({"variant", "contract", "quantity", "worst error ÷ bound", "elements", "vacuous"}) +
                     row({"---", "---", "---", "---:", "---:", "---:"});
  bool any = false;
  for (const CellResult& c : result.cells) {
    if (!c.cell.property.starts_with("agrees_with_oracle") || c.worst_headroom.empty()) continue;
    const KernelVariant* variant = Registry<KernelVariant>::instance().find(c.cell.variant);
    const std::string contract = variant == nullptr ? "?" : to_string(variant->contract.tolerance);
    for (const auto& [quantity, headroom] : c.worst_headroom) {
      text += row({c.cell.variant, contract, quantity, fmt::format("{:.3f}", headroom), std::to_string(c.elements),
                   std::to_string(c.vacuous_elements)});
      any = true;
    }
  }
  return any ? "## What each variant may be trusted with\n\n" + text + "\n" : "";
}

std::string details(const CampaignResult& result) {
  std::string failures, reported;
  for (const CellResult& c : result.cells) {
    if (is_failure(c.status) || c.status == Status::kHarnessError || c.status == Status::kUndecided)
      failures += "```\n" + counterexample_text(c) + "```\n\n";
    else if (c.status == Status::kNotPromised || c.status == Status::kKnownFailure || c.status == Status::kUnexpectedPass)
      reported += fmt::format("- **{}** `{}` × `{}`: {} (`{}`)\n", name_of(c.status), c.cell.variant, c.cell.property, c.sentence,
                              to_string(c.source));
  }
  std::string text;
  if (!failures.empty()) text += "## Counterexamples\n\n" + failures;
  if (!reported.empty()) text += "## Not promised, or known\n\n" + reported + "\n";
  return text;
}

}  // namespace

std::string markdown_report(const CampaignResult& result) {
  std::string text = "# Attest report\n\n" + conclusion(result) + "\n\n";
  std::vector<std::string> needing_gpu;
  for (const Grid& grid : grids(result)) {
    if (!grid.columns.empty()) text += verdict_table(grid);
    needing_gpu.insert(needing_gpu.end(), grid.needing_gpu.begin(), grid.needing_gpu.end());
  }
  text += "A cell is one verdict, or two: forward / gradients.\n\n";
  if (!needing_gpu.empty()) text += fmt::format("Unsupported here (no GPU): {}\n\n", fmt::join(needing_gpu, ", "));
  text += contracts(result) + details(result);
  text += "## How it was made\n\n";
  for (const auto& [key, value] : result.provenance) text += fmt::format("- {}: {}\n", key, value);
  return text + "\n" + effort_text(result);
}

}  // namespace attest
