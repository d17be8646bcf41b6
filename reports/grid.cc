#include "reports/grid.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "harness/error.h"
#include "harness/printable.h"
#include "harness/variant.h"

namespace attest {
namespace {

std::string op_of(const std::string& variant) {
  const KernelVariant* record = Registry<KernelVariant>::instance().find(variant);
  return record != nullptr ? std::string(name_of(record->op)) : variant.substr(0, variant.find('.'));
}

std::string short_name(const std::string& variant, const std::string& op) {
  return variant.starts_with(op + ".") ? variant.substr(op.size() + 1) : variant;
}

struct Law {
  std::string base, part;  // part: "forward", "gradients" or ""
};

Law split(const std::string& property) {
  for (const char* part : {"forward", "gradients"})
    if (property.ends_with("." + std::string(part))) return {property.substr(0, property.size() - strlen(part) - 1), part};
  return {property, ""};
}

std::string upper(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::toupper(c); });
  return out;
}

Grid grid_of(const std::string& op, const std::vector<const CellResult*>& cells) {
  Grid grid{op, {}, {}, {}};
  std::set<std::string> variants, without_gpu;
  std::map<std::string, std::map<std::string, std::map<std::string, std::string>>> text;  // law → variant → part
  for (const CellResult* c : cells) {
    if (c->status == Status::kNeedsGpu) {
      without_gpu.insert(c->cell.variant);
      continue;
    }
    variants.insert(c->cell.variant);
    const Law law = split(c->cell.property);
    text[law.base][c->cell.variant][law.part] = cell_text(*c);
  }
  for (const std::string& v : variants) grid.columns.push_back(short_name(v, op));
  for (const auto& [law, by_variant] : text) {
    Grid::Row row{law, {}};
    for (const std::string& v : variants) {
      std::vector<std::string> parts;
      const auto found = by_variant.find(v);
      if (found != by_variant.end())
        for (const auto& [part, word] : found->second)
          if (parts.empty() || parts.back() != word) parts.push_back(word);
      row.cells.push_back(fmt::format("{}", fmt::join(parts, " | ")));
    }
    grid.rows.push_back(std::move(row));
  }
  std::stable_sort(grid.rows.begin(), grid.rows.end(),
                   [](const Grid::Row& a, const Grid::Row& b) { return (a.law == "returns") > (b.law == "returns"); });
  grid.needing_gpu.assign(without_gpu.begin(), without_gpu.end());
  return grid;
}

/// What --case takes and what was done to its data since, apart.
std::string source_text(const Source& source) {
  std::string text = source.made_by ? fmt::format("  case       {}\n", to_string(*source.made_by))
                                    : fmt::format("  fixture    {}\n", source.fixture);
  if (!source.edits.empty()) text += fmt::format("  edits      {}\n", fmt::join(source.edits, "; "));
  return text;
}

std::string replay_arguments(const CellResult& cell) {
  std::string text;
  for (const std::string& library : cell.load) text += fmt::format("--load {} ", shell_word(library));
  return text + shell_word(cell.fixture);
}

/// Two digits, never an exponent: 0, < 0.01, 0.25, 3.1, 42, 100.
std::string percent(int64_t part, int64_t whole) {
  const double x = 100.0 * static_cast<double>(part) / static_cast<double>(std::max<int64_t>(1, whole));
  if (x > 0 && x < 0.01) return "< 0.01";
  return x < 9.95 ? fmt::format("{:.2g}", x) : fmt::format("{:.0f}", x);
}

const char* headline(const CampaignResult& result) {
  switch (static_cast<ExitCode>(exit_code(result))) {
    case ExitCode::kAllPassed: return "All passed";
    case ExitCode::kKernelWrong: return "A kernel is wrong";
    case ExitCode::kHarnessFailed: return "The harness or the machine failed";
    case ExitCode::kInterrupted: return "Interrupted before all cases were judged";
    default: break;
  }
  const auto ran = [](const CellResult& c) { return c.cases_before > c.unsupported; };
  return std::any_of(result.cells.begin(), result.cells.end(), ran) ? "Nothing passed" : "Nothing ran";
}

}  // namespace

std::vector<Grid> grids(const CampaignResult& result) {
  std::map<std::string, std::vector<const CellResult*>> by_op;
  for (const CellResult& c : result.cells) by_op[op_of(c.cell.variant)].push_back(&c);
  std::vector<Grid> out;
  for (const auto& [op, cells] : by_op) out.push_back(grid_of(op, cells));
  return out;
}

std::string cell_text(const CellResult& cell) {
  if (cell.status == Status::kIncorrect) return "FAILS";
  const std::string word(name_of(cell.status));
  const bool shout = is_failure(cell.status) || cell.status == Status::kHarnessError || cell.status == Status::kUndecided;
  return shout ? upper(word) : word;
}

std::string comparison_text(const Comparison& c) {
  const auto bits = [&](uint64_t b) { return fmt::format("0x{:0{}x}", b, c.bits_width / 4); };
  std::string text = fmt::format("  at         {}[{}]\n", c.quantity, fmt::join(c.index, ","));
  text += fmt::format("  actual     {:<24.9g} {}\n", c.actual, bits(c.actual_bits));
  text += fmt::format("  expected   {:<24} {}\n",
                      fmt::format("{:.9g}{}", c.expected, c.radius > 0 ? fmt::format(" ± {:.0e}", c.radius) : ""),
                      bits(c.expected_bits));
  if (c.bound > 0)
    text += fmt::format("  error      {:.3g} ({:.3g} ulp), bound {:.3g}: {:.3g} × bound; {} of {} elements fail\n", c.error,
                        c.error_ulps, c.bound, c.headroom, c.failing, c.elements);
  else
    text += fmt::format("  error      {:.3g} ({:.3g} ulp), the bits must be equal; {} of {} elements fail\n", c.error,
                        c.error_ulps, c.failing, c.elements);
  return text;
}

std::string counterexample_text(const CellResult& cell) {
  std::string text = fmt::format("{}  {} × {}", upper(name_of(cell.status)), cell.cell.variant, cell.cell.property);
  if (is_failure(cell.status))
    text += fmt::format("   minimal after {} cases, {} shrinks ({} probes)", cell.cases_before, cell.shrinks, cell.probes);
  text += fmt::format("\n  {}\n", cell.sentence) + source_text(cell.source);
  if (const Comparison* worst = worst_of(cell.worst)) text += comparison_text(*worst);
  if (!cell.fixture.empty()) text += fmt::format("  replay     attest replay {}\n", replay_arguments(cell));
  return text;
}

std::string effort_text(const CampaignResult& result) {
  const TimeShare& time = result.time;
  const double total = std::max(1e-9, time.oracle + time.kernel + time.harness);
  std::string text = fmt::format("{} cases in {:.1f} s; time in oracle {:.0f} %, kernels {:.0f} %, harness {:.0f} %; seed {}\n",
                                 result.cases, result.seconds, 100 * time.oracle / total, 100 * time.kernel / total,
                                 100 * time.harness / total, result.provenance.contains("seed") ? result.provenance.at("seed") : "?");
  int64_t references = 0;
  for (int64_t n : time.references) references += n;
  if (references == 0) return text;
  text += fmt::format("oracle: {} references, {:.0f} per second and core", references, 1000 * references / std::max(1e-9, time.oracle));
  for (size_t tier = 1; tier < time.references.size(); ++tier)
    text += fmt::format("{} {} % to tier {}", tier == 1 ? "; escalated" : ",", percent(time.references[tier], time.references[0]), tier);
  return text + "\n";
}

std::string conclusion(const CampaignResult& result) {
  std::map<Status, int64_t> count;
  for (const CellResult& c : result.cells) ++count[c.status];
  std::vector<std::string> parts;
  for (const auto& [status, n] : count) parts.push_back(fmt::format("{} {}", n, name_of(status)));
  return fmt::format("{}: {} cells: {}.", headline(result), result.cells.size(), fmt::join(parts, ", "));
}

int exit_code(const CampaignResult& result) {
  bool harness = false, passed = false;
  for (const CellResult& c : result.cells) {
    if (is_failure(c.status)) return static_cast<int>(ExitCode::kKernelWrong);
    harness = harness || c.status == Status::kHarnessError || c.status == Status::kUndecided;
    passed = passed || c.status == Status::kPass || c.status == Status::kUnexpectedPass;
  }
  if (harness) return static_cast<int>(ExitCode::kHarnessFailed);
  if (result.interrupted) return static_cast<int>(ExitCode::kInterrupted);
  return static_cast<int>(passed ? ExitCode::kAllPassed : ExitCode::kNothingRan);
}

}  // namespace attest
