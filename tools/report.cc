// attest report: the report of one run, or of several as one.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "reports/report.h"
#include "tools/commands.h"

namespace attest {

void add_report(CLI::App& app, Program&) {
  struct Flags {
    std::vector<std::string> runs;
    std::string format = "md";
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* c = app.add_subcommand("report", "Print the tolerance-contract report of runs");
  c->add_option("runs", flags->runs, "run folders, or report.json files")->required();
  c->add_option("--format", flags->format, "md, json or text")
      ->capture_default_str()
      ->check(CLI::IsMember({"md", "json", "text"}));
  c->callback([flags] {
    std::vector<CampaignResult> results;
    for (const std::string& run : flags->runs) results.push_back(read_report(run));
    const CampaignResult merged = merge_reports(results);
    fmt::print("{}", flags->format == "md"     ? markdown_report(merged)
                     : flags->format == "json" ? json_report(merged)
                                               : text_report(merged));
  });
}

}  // namespace attest
