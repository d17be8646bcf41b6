#include "harness/campaign_json.h"

#include <nlohmann/json.hpp>

#include "harness/error.h"
#include "harness/verdict_json.h"

namespace attest {

using nlohmann::json;

void to_json(json& j, const CellResult& c) {
  j = json{{"cell", c.cell},
           {"status", name_of(c.status)},
           {"sentence", c.sentence},
           {"passed", c.passed},
           {"vacuous", c.vacuous},
           {"unsupported", c.unsupported},
           {"not_promised", c.not_promised},
           {"known", c.known},
           {"undecided", c.undecided},
           {"worst", c.worst},
           {"source", c.source},
           {"found", c.found},
           {"fixture", c.fixture},
           {"load", c.load},
           {"cases_before", c.cases_before},
           {"shrinks", c.shrinks},
           {"probes", c.probes},
           {"worst_headroom", c.worst_headroom},
           {"vacuous_elements", c.vacuous_elements},
           {"elements", c.elements}};
}

void from_json(const json& j, CellResult& c) {
  j.at("cell").get_to(c.cell);
  if (!from_name(j.at("status").get<std::string>(), c.status)) throw UsageError("unknown status " + j.at("status").dump());
  j.at("sentence").get_to(c.sentence);
  j.at("passed").get_to(c.passed);
  j.at("vacuous").get_to(c.vacuous);
  j.at("unsupported").get_to(c.unsupported);
  j.at("not_promised").get_to(c.not_promised);
  j.at("known").get_to(c.known);
  j.at("undecided").get_to(c.undecided);
  j.at("worst").get_to(c.worst);
  j.at("source").get_to(c.source);
  j.at("found").get_to(c.found);
  j.at("fixture").get_to(c.fixture);
  c.load = j.value("load", std::vector<std::string>());
  j.at("cases_before").get_to(c.cases_before);
  j.at("shrinks").get_to(c.shrinks);
  j.at("probes").get_to(c.probes);
  j.at("worst_headroom").get_to(c.worst_headroom);
  j.at("vacuous_elements").get_to(c.vacuous_elements);
  j.at("elements").get_to(c.elements);
}

void to_json(json& j, const CampaignResult& r) {
  j = json{{"format", "attest report 1"},
           {"provenance", r.provenance},
           {"cases", r.cases},
           {"time", r.time},
           {"seconds", r.seconds},
           {"interrupted", r.interrupted},
           {"cells", r.cells}};
}

void from_json(const json& j, CampaignResult& r) {
  if (!j.is_object() || j.value("format", "") != "attest report 1") throw UsageError("it is no report of attest");
  j.at("provenance").get_to(r.provenance);
  j.at("cases").get_to(r.cases);
  j.at("time").get_to(r.time);
  j.at("seconds").get_to(r.seconds);
  r.interrupted = j.value("interrupted", false);
  j.at("cells").get_to(r.cells);
}

}  // namespace attest
