#include "harness/ledger.h"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/campaign_json.h"
#include "harness/error.h"
#include "harness/verdict_json.h"

namespace attest {
namespace {

using nlohmann::json;

constexpr int kDeathsBeforeRetirement = 3;

/// A pass of a bitwise law says nothing by its comparisons; they are dropped to keep the journal short.
Verdict abridged(Verdict verdict) {
  if (verdict.status == Status::kPass)
    std::erase_if(verdict.comparisons, [](const Comparison& c) { return c.headroom == 0 && c.vacuous == 0; });
  return verdict;
}

double worst_headroom(const Verdict& verdict) {
  double worst = -1;
  for (const Comparison& c : verdict.comparisons) worst = std::max(worst, c.headroom);
  return worst;
}

/// What a cell's status is decided by: the gravest verdict that it met.
int severity(Status status) {
  switch (status) {
    case Status::kVacuous:
      return 0;
    case Status::kUnsupported:
      return 1;
    case Status::kPass:
      return 2;
    case Status::kNotPromised:
      return 3;
    case Status::kKnownFailure:
      return 4;
    case Status::kUndecided:
      return 5;
    case Status::kHarnessError:
      return 6;
    default:
      return 7;
  }
}

void count(CellResult& cell, const Verdict& verdict) {
  switch (verdict.status) {
    case Status::kPass:
      ++cell.passed;
      break;
    case Status::kVacuous:
      ++cell.vacuous;
      break;
    case Status::kUnsupported:
      ++cell.unsupported;
      break;
    case Status::kNotPromised:
      ++cell.not_promised;
      break;
    case Status::kKnownFailure:
      ++cell.known;
      break;
    case Status::kUndecided:
      ++cell.undecided;
      break;
    default:
      return;
  }
  for (const Comparison& c : verdict.comparisons) {
    cell.vacuous_elements += c.vacuous;
    cell.elements += c.elements;
    if (verdict.status != Status::kPass) continue;
    double& worst = cell.worst_headroom[c.quantity];
    worst = std::max(worst, c.headroom);
  }
}

json encode_case(const CaseResult& result) {
  json verdicts = json::array();
  for (const auto& [cell, verdict] : result.verdicts) verdicts.push_back({{"cell", cell}, {"verdict", verdict}});
  return {{"judged", result.number}, {"source", result.source}, {"time", result.time}, {"verdicts", verdicts}};
}

CaseResult decode_case(const json& j) {
  CaseResult result{j.at("judged"), j.at("source").get<Source>(), {}, j.at("time").get<TimeShare>()};
  for (const json& v : j.at("verdicts")) result.verdicts.push_back({v.at("cell").get<Cell>(), v.at("verdict").get<Verdict>()});
  return result;
}

/// What a kill tore is taken off, so that the next line does not continue it.
void cut(const std::string& path, uintmax_t size) {
  std::error_code failed;
  const uintmax_t now = std::filesystem::file_size(path, failed);
  if (failed || now <= size) return;  // no journal yet, or nothing torn
  std::filesystem::resize_file(path, size, failed);
  if (failed) throw Error(fmt::format("cannot cut the torn end off {}: {}", path, failed.message()));
}

}  // namespace

Ledger::Ledger(const Plan& plan, const std::string& journal_path)
    : plan_(plan),
      results_(plan.cells().size()),
      closed_(plan.cells().size()),
      shrunk_(plan.cells().size()),
      passed_over_(plan.cells().size()) {
  for (size_t i = 0; i < results_.size(); ++i) {
    results_[i].cell = plan.cells()[i].cell;
    index_[results_[i].cell] = i;
    closed_[i] = plan.cells()[i].impossible.has_value();
  }
  replay(journal_path);
  journal_.reset(fopen(journal_path.c_str(), "ae"));
  if (!journal_) throw Error(fmt::format("cannot write {}: {}", journal_path, strerror(errno)));
}

void Ledger::replay(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  uintmax_t whole = 0;  // bytes of the lines that are read
  int64_t number = 1;
  for (std::string line; std::getline(file, line) && !file.eof(); ++number) {
    if (!read_entry(line)) {
      if (file.peek() == EOF) break;
      throw UsageError(fmt::format("{} is damaged at line {}: start a new run, or cut the file there", path, number));
    }
    whole += line.size() + 1;
  }
  cut(path, whole);
  for (auto it = pending_.begin(); it != pending_.end() && it->first == next_; it = pending_.erase(it)) commit(it->second);
}

bool Ledger::read_entry(const std::string& line) try {
  const json j = json::parse(line);
  if (!j.is_object()) return false;
  if (j.contains("judged")) {
    CaseResult result = decode_case(j);
    pending_.emplace(result.number, std::move(result));
  } else if (j.contains("minimum")) {
    CellResult cell = j.at("minimum").get<CellResult>();
    const auto it = index_.find(cell.cell);
    if (it == index_.end()) return true;
    closed_[it->second] = shrunk_[it->second] = true;
    results_[it->second] = std::move(cell);
  }
  return true;
} catch (const std::exception&) {
  return false;
}

void Ledger::append(const std::string& line) {
  if (fprintf(journal_.get(), "%s\n", line.c_str()) < 0 || fflush(journal_.get()) != 0)
    throw Error(fmt::format("cannot write the journal: {}", strerror(errno)));
}

void Ledger::begin(int64_t number, const Source& source) { append(json{{"begin", number}, {"source", source}}.dump()); }

int64_t Ledger::enter(CaseResult result) {
  for (auto& entry : result.verdicts) entry.verdict = abridged(std::move(entry.verdict));
  append(encode_case(result).dump(-1, ' ', false, json::error_handler_t::replace));
  const int64_t number = result.number;
  pending_.emplace(number, std::move(result));
  for (auto it = pending_.begin(); it != pending_.end() && it->first == next_; it = pending_.erase(it)) commit(it->second);
  return next_;
}

void Ledger::enter_minimum(const CellResult& cell) {
  append(json{{"minimum", cell}}.dump(-1, ' ', false, json::error_handler_t::replace));
  const size_t i = index_.at(cell.cell);
  results_[i] = cell;
  shrunk_[i] = true;
}

void Ledger::show_failures(std::vector<CaseResult> in_part) {
  for (CaseResult& result : in_part) pending_.emplace(result.number, std::move(result));
  for (const auto& [number, result] : pending_)
    for (const auto& [cell, verdict] : result.verdicts) {
      const auto it = index_.find(cell);
      if (is_failure(verdict.status) && it != index_.end() && !closed_[it->second]) commit_verdict(it->second, result, verdict);
    }
}

void Ledger::commit(const CaseResult& result) {
  time_ += result.time;
  note_passed_over(result);
  for (const auto& [cell, verdict] : result.verdicts) {
    const auto it = index_.find(cell);
    if (it != index_.end() && !closed_[it->second]) commit_verdict(it->second, result, verdict);
    if (verdict.status != Status::kCrashed && verdict.status != Status::kTimedOut) continue;
    if (++deaths_[cell.variant] == kDeathsBeforeRetirement)
      retire(cell.variant, fmt::format("given no more cases: its process died {} times", kDeathsBeforeRetirement));
  }
  ++next_;
}

void Ledger::note_passed_over(const CaseResult& result) {
  const auto judged = [&](const Cell& cell) {
    return std::any_of(result.verdicts.begin(), result.verdicts.end(), [&](const auto& v) { return v.cell == cell; });
  };
  for (size_t i : plan_.cells_for(result.source))
    if (!closed_[i] && !judged(results_[i].cell)) passed_over_[i] = true;
}

void Ledger::commit_verdict(size_t index, const CaseResult& result, const Verdict& verdict) {
  CellResult& cell = results_[index];
  ++cell.cases_before;
  count(cell, verdict);
  const int before = severity(cell.worst.status), now = severity(verdict.status);
  const bool less_headroom = verdict.status == Status::kPass && worst_headroom(verdict) > worst_headroom(cell.worst);
  if (now > before || (now == before && less_headroom)) {
    cell.worst = verdict;
    cell.sentence = verdict.sentence;
    cell.source = cell.found = result.source;
  }
  if (now >= severity(Status::kHarnessError)) closed_[index] = true;
}

void Ledger::retire(const std::string& variant, const std::string& why) {
  for (size_t i = 0; i < results_.size(); ++i)
    if (results_[i].cell.variant == variant && !closed_[i]) {
      closed_[i] = passed_over_[i] = true;
      results_[i].sentence = why;
    }
}

int64_t Ledger::failing() const {
  return std::count_if(results_.begin(), results_.end(), [](const CellResult& c) { return is_failure(c.worst.status); });
}

std::vector<size_t> Ledger::to_shrink() const {
  std::vector<size_t> out;
  for (size_t i = 0; i < results_.size(); ++i)
    if (closed_[i] && !shrunk_[i] && is_failure(results_[i].worst.status)) out.push_back(i);
  return out;
}

std::vector<CellResult> Ledger::conclude() const {
  std::vector<CellResult> out = results_;
  for (size_t i = 0; i < out.size(); ++i) {
    CellResult& c = out[i];
    const auto& impossible = plan_.cells()[i].impossible;
    const auto& known = plan_.cells()[i].variant->known_failures;
    if (impossible) {
      c.status = *impossible == "needs a GPU" ? Status::kNeedsGpu : Status::kUnsupported;
      c.sentence = *impossible;
    } else {
      c.status = c.worst.status;
      if (c.status == Status::kPass && known.contains(c.cell.property)) c.status = Status::kUnexpectedPass;
      if (c.cases_before == 0 && c.sentence.empty()) c.sentence = "no case lay inside its domain";
      if (passed_over_[i] && c.cases_before == c.unsupported) {
        c.status = Status::kNotReached;
        c.sentence = "on each of its cases `returns` failed, or the process died, before its turn";
      }
    }
  }
  std::sort(out.begin(), out.end(), [](const CellResult& a, const CellResult& b) { return a.cell < b.cell; });
  return out;
}

}  // namespace attest
