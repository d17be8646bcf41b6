// What a parent sends to a worker process, and what comes back: one JSON object a line, in both directions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/case.h"
#include "harness/verdict.h"

namespace attest {

/// One variant against one property.
struct Cell {
  std::string variant, property;
  auto operator<=>(const Cell&) const = default;
};

/// Where inputs come from: a Case, or a fixture file; then simplified by `edits` (harness/edit.h), in order.
struct Source {
  std::optional<Case> made_by;
  std::string fixture;  // path; used when there is no case
  std::vector<std::string> edits;
  bool operator==(const Source&) const = default;
};
/// `case B=1 …` or `fixture path`, with the edits.
std::string to_string(const Source& source);

/// The cells of one source. `record`: where to keep the last cell's inputs, outputs and reference; empty: nowhere.
struct Job {
  Source source;
  std::vector<Cell> cells;
  std::string record;
};

/// Milliseconds spent, by part.
struct TimeShare {
  double oracle = 0, kernel = 0, harness = 0;
  std::vector<int64_t> references;  // how many were evaluated at each tier of the oracle
  TimeShare& operator+=(const TimeShare& o);
};

struct Event {
  enum class Kind : uint8_t { kStart, kOracle, kKernel, kVerdict, kDone, kPoisoned };
  Kind kind = Kind::kDone;
  Cell cell;                 // kStart, kVerdict
  Verdict verdict;           // kVerdict
  TimeShare time;            // kDone, kPoisoned
  bool operator==(Kind k) const { return kind == k; }
};
template <>
struct EnumNames<Event::Kind> {
  // poisoned: the CUDA context is broken, the worker ends itself after this message
  static constexpr std::string_view kNames[] = {"start", "oracle", "kernel", "verdict", "done", "poisoned"};
};

std::string encode(const Job& job);
Job decode_job(const std::string& line);
std::string encode(const Event& event);
Event decode_event(const std::string& line);

void to_json(nlohmann::json& j, const Cell& cell);
void from_json(const nlohmann::json& j, Cell& cell);
void to_json(nlohmann::json& j, const Source& source);
void from_json(const nlohmann::json& j, Source& source);
void to_json(nlohmann::json& j, const TimeShare& time);
void from_json(const nlohmann::json& j, TimeShare& time);

}  // namespace attest
