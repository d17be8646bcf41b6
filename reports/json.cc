// report.json: written, read again, merged.
#include <fmt/format.h>
#include <string.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/campaign_json.h"
#include "harness/error.h"
#include "reports/grid.h"
#include "reports/report.h"

namespace attest {

using nlohmann::json;

std::string json_report(const CampaignResult& result) {
  return json(result).dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

CampaignResult read_report(const std::string& path) {
  const std::string file = std::filesystem::is_directory(path) ? path + "/report.json" : path;
  std::ifstream in(file);
  if (!in) throw UsageError(fmt::format("cannot read {}: {}; name a run folder or its report.json", file, strerror(errno)));
  const json j = json::parse(in, nullptr, false);
  try {
    if (j.is_discarded()) throw UsageError("it is no JSON");
    return j.get<CampaignResult>();
  } catch (const json::exception&) {
    throw UsageError(fmt::format("{} is damaged: make it again with attest run", file));
  } catch (const Error& e) {
    throw UsageError(fmt::format("{} is not a report that this version reads: {}", file, e.what()));
  }
}

CampaignResult merge_reports(const std::vector<CampaignResult>& results) {
  CampaignResult merged = results.front();
  std::map<Cell, CellResult> cells;
  for (const CampaignResult& r : results) {
    for (const CellResult& c : r.cells) {
      const auto it = cells.find(c.cell);
      const bool graver = it == cells.end() || (is_failure(c.status) && !is_failure(it->second.status)) ||
                          (it->second.passed == 0 && !is_failure(it->second.status));
      if (graver) cells[c.cell] = c;
    }
    if (&r == &results.front()) continue;
    merged.interrupted = merged.interrupted || r.interrupted;
    merged.cases += r.cases;
    merged.seconds += r.seconds;
    merged.time += r.time;
    for (const auto& [key, value] : r.provenance)
      if (merged.provenance[key] != value) merged.provenance[key] += "; " + value;
  }
  merged.cells.clear();
  for (auto& [name, c] : cells) merged.cells.push_back(std::move(c));
  return merged;
}

void write_file(const std::string& path, const std::string& text) {
  std::error_code failed;
  if (const auto folder = std::filesystem::path(path).parent_path(); !folder.empty()) std::filesystem::create_directories(folder, failed);
  const std::string temporary = path + ".new";
  std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (out) std::filesystem::rename(temporary, path, failed);
  if (!out || failed) throw Error(fmt::format("cannot write {}: {}", path, failed ? failed.message() : strerror(errno)));
}

}  // namespace attest
