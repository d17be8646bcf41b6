// CampaignResult ↔ JSON: report.json, the journal.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "harness/campaign.h"

namespace attest {

void to_json(nlohmann::json& j, const CellResult& cell);
void from_json(const nlohmann::json& j, CellResult& cell);
void to_json(nlohmann::json& j, const CampaignResult& result);
void from_json(const nlohmann::json& j, CampaignResult& result);

}  // namespace attest
