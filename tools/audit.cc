// attest audit: are the radii of the certified tiers true? Every element against an enclosure at ≥ 1000 bits.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>

#include "build_info.h"
#include "harness/error.h"
#include "oracles/audit/audit.h"
#include "reports/report.h"
#include "tools/commands.h"
#include "tools/machine.h"

namespace attest {
namespace {

struct AuditFlags {
  AuditPlan plan;
  std::string out;
};

std::vector<AuditTier> certified_tiers() {
  return {{"double", false, [](const GroupProblem& p, GroupReference& r) { evaluate_double(p, r, 1); }},
          {"double-double", true, [](const GroupProblem& p, GroupReference& r) { evaluate_double_double(p, r, 1); }}};
}

/// "2^-60", or "0".
std::string power(double x) {
  if (x == 0 || !std::isfinite(x)) return fmt::format("{}", x);
  return fmt::format("2^{:.0f}", std::ceil(std::log2(x)));
}

std::string table_of(const AuditResult& result) {
  std::string text = fmt::format("{:<13} {:<13} {:<10} {:<4} {:>10} {:>9} {:>9} {:>9} {:>9} {:>10} {:>9}\n", "op", "tier",
                                 "regime", "", "elements", "relative", "ulps", "median", "most", "violations", "undecided");
  for (const auto& [key, cell] : result.cells)
    text += fmt::format("{:<13} {:<13} {:<10} {:<4} {:>10} {:>9} {:>9} {:>9} {:>9} {:>10} {:>9}\n", name_of(key.op), key.tier,
                        name_of(key.regime), quantity_name(key.op, key.quantity), cell.elements, power(cell.worst_relative),
                        power(cell.worst_ulps), power(cell.median_pessimism()), power(cell.most_pessimism), cell.violations,
                        cell.undecided);
  return text;
}

/// JSON knows no infinity.
nlohmann::json number(double x) { return std::isfinite(x) ? nlohmann::json(x) : nlohmann::json(fmt::format("{}", x)); }

nlohmann::json encoded(const AuditKey& key, const AuditCell& cell) {
  return {{"op", name_of(key.op)},
          {"tier", key.tier},
          {"regime", name_of(key.regime)},
          {"quantity", quantity_name(key.op, key.quantity)},
          {"elements", cell.elements},
          {"violations", cell.violations},
          {"undecided", cell.undecided},
          {"unbounded", cell.unbounded},
          {"exact", cell.exact},
          {"worst_error_relative_to_largest", number(cell.worst_relative)},
          {"worst_error_fp32_ulps", number(cell.worst_ulps)},
          {"median_pessimism", number(cell.median_pessimism())},
          {"most_pessimism", number(cell.most_pessimism)}};
}

nlohmann::json encoded(const AuditFinding& finding) {
  const AuditMiss& miss = finding.miss;
  return {{"case", to_string(finding.inputs)}, {"tier", miss.tier},         {"quantity", name_of(miss.quantity)},
          {"element", miss.element},           {"hi", number(miss.hi)},     {"lo", number(miss.lo)},
          {"radius", number(miss.radius)},     {"error", number(miss.error)}};
}

nlohmann::json encoded(const AuditPlan& plan, const AuditResult& result) {
  nlohmann::json json = {{"format", "attest audit 1"},
                         {"version", kVersion},
                         {"commit", kCommit},
                         {"compiler", kCompiler},
                         {"machine", machine_provenance()},
                         {"seed", plan.seed},
                         {"bits", plan.bits},
                         {"longest_row", plan.sizes.longest_row},
                         {"largest_head_dim", plan.sizes.head_dim},
                         {"cases", result.cases},
                         {"elements", result.elements},
                         {"cells", nlohmann::json::array()},
                         {"findings", nlohmann::json::array()}};
  for (const auto& [key, cell] : result.cells) json["cells"].push_back(encoded(key, cell));
  for (const AuditFinding& finding : result.findings) json["findings"].push_back(encoded(finding));
  return json;
}

void print_findings(const AuditResult& result) {
  constexpr size_t kShown = 20;
  for (size_t n = 0; n < std::min(kShown, result.findings.size()); ++n) {
    const AuditFinding& f = result.findings[n];
    fmt::print("OUTSIDE  {} {}[{}]: error up to {:.3e}, radius {:.3e}\n  case  {}\n", f.miss.tier, name_of(f.miss.quantity),
               f.miss.element, f.miss.error, f.miss.radius, to_string(f.inputs));
  }
}

int run(AuditFlags& flags) {
  if (const auto reason = balls_unavailable()) throw Error(*reason, ExitCode::kNothingRan);
  flags.plan.tiers = certified_tiers();
  int64_t told = 0;
  const AuditResult result = audit(flags.plan, [&](int64_t done) {
    if (done - told < flags.plan.elements / 20) return;
    told = done;
    fmt::print(stderr, "{} of {} elements\n", done, flags.plan.elements);
  });
  fmt::print("{}\n", table_of(result));
  print_findings(result);
  fmt::print("{} elements of {} cases, each tier against enclosures of {} bits: {}\n", result.elements, result.cases,
             flags.plan.bits, result.sound() ? "every true value lies within its radius" : "NOT EVERY true value lies within");
  if (!flags.out.empty()) write_file(flags.out, encoded(flags.plan, result).dump(1) + "\n");
  return static_cast<int>(result.sound() ? ExitCode::kAllPassed : ExitCode::kKernelWrong);  // what was tested is wrong: an oracle
}

}  // namespace

void add_audit(CLI::App& app, Program& program) {
  auto flags = std::make_shared<AuditFlags>();
  flags->plan.jobs = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  CLI::App* c = app.add_subcommand("audit", "Hold the radii of the certified oracles against enclosures at 1024 bits");
  c->add_option("--elements", flags->plan.elements, "elements, at least")->capture_default_str()->check(CLI::PositiveNumber);
  c->add_option("--seed", flags->plan.seed, "of the cases")->capture_default_str();
  c->add_option("--jobs", flags->plan.jobs, "threads")->capture_default_str()->check(CLI::Range(1, 1024));
  c->add_option("--bits", flags->plan.bits, "of the enclosures")->capture_default_str()->check(CLI::Range(1000, 100000));
  c->add_option("--longest-row", flags->plan.sizes.longest_row, "keys of the longest row")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{64}, int64_t{1} << 20));
  c->add_option("--head-dim", flags->plan.sizes.head_dim, "the largest")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{256}));
  c->add_option("--out", flags->out, "JSON file");
  c->callback([flags, &program] { program.code = run(*flags); });
}

}  // namespace attest
