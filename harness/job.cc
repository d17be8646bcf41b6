#include "harness/job.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "harness/error.h"
#include "harness/verdict_json.h"

namespace attest {

using nlohmann::json;

std::string to_string(const Source& source) {
  std::string text = source.made_by ? to_string(*source.made_by) : "fixture " + source.fixture;
  for (const std::string& edit : source.edits) text += " | " + edit;
  return text;
}

TimeShare& TimeShare::operator+=(const TimeShare& o) {
  oracle += o.oracle;
  kernel += o.kernel;
  harness += o.harness;
  references.resize(std::max(references.size(), o.references.size()));
  for (size_t tier = 0; tier < o.references.size(); ++tier) references[tier] += o.references[tier];
  return *this;
}

void to_json(json& j, const Cell& cell) { j = json::array({cell.variant, cell.property}); }
void from_json(const json& j, Cell& cell) {
  cell.variant = j.at(0).get<std::string>();
  cell.property = j.at(1).get<std::string>();
}

void to_json(json& j, const Source& source) {
  j = json{{"edits", source.edits}};
  if (source.made_by)
    j["case"] = to_string(*source.made_by);
  else
    j["fixture"] = source.fixture;
}
void from_json(const json& j, Source& source) {
  source = {};
  j.at("edits").get_to(source.edits);
  if (j.contains("case"))
    source.made_by = parse_case(j.at("case").get<std::string>());
  else
    j.at("fixture").get_to(source.fixture);
}

void to_json(json& j, const TimeShare& t) {
  j = json{{"oracle_ms", t.oracle}, {"kernel_ms", t.kernel}, {"harness_ms", t.harness}, {"references", t.references}};
}
void from_json(const json& j, TimeShare& t) {
  t = {j.at("oracle_ms").get<double>(), j.at("kernel_ms").get<double>(), j.at("harness_ms").get<double>(),
       j.value("references", std::vector<int64_t>())};
}

std::string encode(const Job& job) { return json{{"source", job.source}, {"cells", job.cells}, {"record", job.record}}.dump(); }

Job decode_job(const std::string& line) {
  const json j = json::parse(line);
  Job job;
  j.at("source").get_to(job.source);
  j.at("cells").get_to(job.cells);
  j.at("record").get_to(job.record);
  return job;
}

std::string encode(const Event& event) {
  json j{{"event", name_of(event.kind)}};
  if (event == Event::Kind::kStart || event == Event::Kind::kVerdict) j["cell"] = event.cell;
  if (event == Event::Kind::kVerdict) j["verdict"] = event.verdict;
  if (event == Event::Kind::kDone || event == Event::Kind::kPoisoned) j["time"] = event.time;
  return j.dump(-1, ' ', false, json::error_handler_t::replace);
}

Event decode_event(const std::string& line) {
  const json j = json::parse(line);
  Event event;
  const auto kind = j.at("event").get<std::string>();
  if (!from_name(kind, event.kind)) throw Error("a worker sent the unknown event '" + kind + "'");
  if (event == Event::Kind::kStart || event == Event::Kind::kVerdict) j.at("cell").get_to(event.cell);
  if (event == Event::Kind::kVerdict) j.at("verdict").get_to(event.verdict);
  if (event == Event::Kind::kDone || event == Event::Kind::kPoisoned) j.at("time").get_to(event.time);
  return event;
}

}  // namespace attest
