// Reports of campaigns: text for a terminal, Markdown for a pull request, JSON for programs.
#pragma once

#include <string>

#include "harness/campaign.h"

namespace attest {

/// The verdict table, the counterexamples, what needs a GPU, the conclusion.
std::string text_report(const CampaignResult& result);
/// The tolerance-contract report: table, what each variant was held to and how near it came, counterexamples, provenance.
std::string markdown_report(const CampaignResult& result);
std::string json_report(const CampaignResult& result);

/// Reads report.json of a run folder, or a report.json itself. Throws UsageError.
CampaignResult read_report(const std::string& path);
/// Several runs as one: cells of the same name are taken from the gravest.
CampaignResult merge_reports(const std::vector<CampaignResult>& results);

/// Writes `text` to `path`, whose folder is made, through a temporary file. Throws Error.
void write_file(const std::string& path, const std::string& text);

}  // namespace attest
