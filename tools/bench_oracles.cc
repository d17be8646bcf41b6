// attest bench oracles: how fast the certified tiers are on this machine.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "build_info.h"
#include "harness/error.h"
#include "reports/report.h"
#include "tools/bench/oracles.h"
#include "tools/commands.h"
#include "tools/machine.h"

namespace attest {
namespace {

using bench::OracleRow;

struct OracleBenchFlags {
  bench::OracleBenchPlan plan;
  bool fast_only = false;
  std::string out;
};

std::string line_of(const OracleRow& row) {
  std::string text = fmt::format("  {:<18} {:<7} {:>2}", row.arithmetic, row.lanes, row.threads);
  if (!row.absent.empty()) return text + fmt::format("  absent: {}\n", row.absent);
  return text + fmt::format(" {:>12.3f} {:>12.3f} {:>12.2f}{}\n", row.seconds * 1e3, 1 / row.seconds, row.over_plain,
                            row.extrapolated ? "  from 4 rows" : "");
}

void print(const std::vector<OracleRow>& rows) {
  const OracleRow& first = rows.front();
  fmt::print("{} S={} D={}, forward and backward\n  {:<18} {:<7} {:>2} {:>12} {:>12} {:>12}\n", name_of(first.op), first.seqlen,
             first.head_dim, "arithmetic", "lanes", "th", "ms", "cases/s", "x plain");
  for (const OracleRow& row : rows) fmt::print("{}", line_of(row));
  fmt::print("\n");
  std::fflush(stdout);
}

nlohmann::json encoded(const OracleRow& row) {
  nlohmann::json json = {{"op", name_of(row.op)},          {"seqlen", row.seqlen}, {"head_dim", row.head_dim},
                         {"arithmetic", row.arithmetic}, {"lanes", row.lanes},   {"threads", row.threads}};
  if (!row.absent.empty()) {
    json["absent"] = row.absent;
    return json;
  }
  json["seconds"] = row.seconds;
  json["over_plain_double"] = row.over_plain;
  json["extrapolated"] = row.extrapolated;
  return json;
}

int run(const OracleBenchFlags& flags) {
  nlohmann::json json = {{"format", "attest oracle bench 1"},
                         {"commit", kCommit},
                         {"date", fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)))},
                         {"machine", machine_provenance()},
                         {"repeats", flags.plan.repeats},
                         {"rows", nlohmann::json::array()}};
  for (const OracleRow& row : bench::bench_oracles(flags.plan, print)) json["rows"].push_back(encoded(row));
  if (flags.out.empty()) return static_cast<int>(ExitCode::kAllPassed);
  write_file(flags.out, json.dump(1) + "\n");
  fmt::print("Results: {}\n", flags.out);
  return static_cast<int>(ExitCode::kAllPassed);
}

}  // namespace

void add_bench_oracles(CLI::App& bench, Program& program) {
  auto flags = std::make_shared<OracleBenchFlags>();
  CLI::App* c = bench.add_subcommand("oracles", "Time the certified oracles beside plain double and multiprecision arithmetic");
  c->add_option("--repeats", flags->plan.repeats, "timed runs of each")->capture_default_str()->check(CLI::Range(3, 1000));
  c->add_flag("--fast-only", flags->fast_only, "leave out balls and scalar multiprecision types");
  c->add_option("--out", flags->out, "JSON file");
  c->callback([flags, &program] {
    flags->plan.slow = !flags->fast_only;
    program.code = run(*flags);
  });
}

}  // namespace attest
