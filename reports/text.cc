// The report on a terminal.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "reports/grid.h"
#include "reports/report.h"

namespace attest {
namespace {

std::string table(const Grid& grid) {
  size_t law_width = grid.op.size();
  for (const Grid::Row& row : grid.rows) law_width = std::max(law_width, row.law.size());
  std::vector<size_t> widths;
  for (size_t i = 0; i < grid.columns.size(); ++i) {
    size_t width = grid.columns[i].size();
    for (const Grid::Row& row : grid.rows) width = std::max(width, row.cells[i].size());
    widths.push_back(width);
  }
  const auto line = [&](const std::string& head, const std::vector<std::string>& cells) {
    std::string text = fmt::format("{:<{}}", head, law_width);
    for (size_t i = 0; i < cells.size(); ++i) text += fmt::format("  {:<{}}", cells[i], widths[i]);
    while (text.ends_with(' ')) text.pop_back();
    return text + "\n";
  };
  std::string text = line(grid.op, grid.columns);
  for (const Grid::Row& row : grid.rows) text += line(row.law, row.cells);
  return text;
}

}  // namespace

std::string text_report(const CampaignResult& result) {
  std::string text;
  std::vector<std::string> needing_gpu;
  for (const Grid& grid : grids(result)) {
    if (!grid.columns.empty()) text += table(grid) + "\n";
    needing_gpu.insert(needing_gpu.end(), grid.needing_gpu.begin(), grid.needing_gpu.end());
  }
  text += "A cell is one verdict, or two: forward | gradients.\n\n";
  for (const CellResult& c : result.cells)
    if (is_failure(c.status) || c.status == Status::kHarnessError || c.status == Status::kUndecided)
      text += counterexample_text(c) + "\n";
  if (!needing_gpu.empty()) text += fmt::format("Unsupported here (no GPU): {}\n", fmt::join(needing_gpu, ", "));
  return text + effort_text(result) + conclusion(result) + "\n";
}

}  // namespace attest
