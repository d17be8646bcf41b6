// attest replay: judges fixtures again, on the same or another variant; needs no generator.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "fixtures/fixture.h"
#include "harness/error.h"
#include "harness/variant.h"
#include "reports/grid.h"
#include "tools/commands.h"
#include "tools/flags.h"
#include "tools/fixture_cells.h"
#include "tools/machine.h"

namespace attest {
namespace {

struct ReplayFlags {
  std::vector<std::string> fixtures;
  Selection selection;
  std::string device, timeout = "20s";
};

struct Tally {
  int64_t judged = 0, failing = 0, harness = 0;
};

void judge(WorkerProcess& worker, const std::string& path, const Record& record, const Cell& cell,
           std::chrono::milliseconds timeout, Tally& tally) {
  const JobResult result = worker.work_and_confirm({{std::nullopt, path, {}}, {cell}, ""}, timeout);
  const Verdict verdict =
      result.verdicts.empty() ? Verdict{Status::kHarnessError, "the worker gave no verdict", {}} : result.verdicts.back().verdict;
  CellResult shown{cell};
  shown.status = verdict.status;
  shown.sentence = verdict.sentence;
  shown.worst = verdict;
  const bool same_cell = cell.variant == record.variant && cell.property == record.property;
  const std::string before = !same_cell ? ""
                             : verdict.status == record.verdict.status
                                 ? " (as recorded)"
                                 : fmt::format(" (recorded: {})", name_of(record.verdict.status));
  fmt::print("{}: {}{}  {} × {}\n", path, cell_text(shown), before, cell.variant, cell.property);
  if (!verdict.sentence.empty()) fmt::print("  {}\n", verdict.sentence);
  if (const Comparison* worst = worst_of(verdict); worst != nullptr && is_failure(verdict.status))
    fmt::print("{}", comparison_text(*worst));
  ++tally.judged;
  tally.failing += is_failure(verdict.status) ? 1 : 0;
  tally.harness += verdict.status == Status::kHarnessError || verdict.status == Status::kUndecided ? 1 : 0;
}

int replay(const Program& program, ReplayFlags& flags) {
  if (Device device; from_name(flags.device, device)) flags.selection.device = device;
  const auto timeout = parse_duration(flags.timeout, "--timeout");
  const std::string logs = std::filesystem::temp_directory_path().string();
  Tally tally;
  for (const std::string& path : flags.fixtures) {
    const Record record = read_fixture(path);
    Selection selection = flags.selection;
    prepare_for(record, path, selection);
    const CampaignHooks hooks = campaign_hooks(program, selection, logs);
    for (const Cell& cell : cells_of(record, path, selection)) {
      const Device device = Registry<KernelVariant>::instance().find(cell.variant)->device;
      if (device == Device::kCuda && why_no_gpu()) {
        fmt::print("{}: needs a GPU  {} × {}\n  {}\n", path, cell.variant, cell.property, *why_no_gpu());
        continue;
      }
      WorkerProcess worker = hooks.make_worker(device, 0);
      judge(worker, path, record, cell, timeout, tally);
    }
  }
  fmt::print("{} judged, {} failing\n", tally.judged, tally.failing);
  if (tally.failing > 0) return static_cast<int>(ExitCode::kKernelWrong);
  if (tally.harness > 0) return static_cast<int>(ExitCode::kHarnessFailed);
  return static_cast<int>(tally.judged > 0 ? ExitCode::kAllPassed : ExitCode::kNothingRan);
}

}  // namespace

void add_replay(CLI::App& app, Program& program) {
  auto flags = std::make_shared<ReplayFlags>();
  CLI::App* c = app.add_subcommand("replay", "Judge fixtures again");
  c->add_option("fixtures", flags->fixtures, "fixture files (.h5)")->required();
  c->add_option("--variant", flags->selection.variants, "on these variants, as shell patterns (default: the recorded one)");
  c->add_option("--property", flags->selection.properties, "by these properties (default: the recorded one)");
  c->add_option("--device", flags->device, "only variants of this device")->check(CLI::IsMember({"cpu", "cuda"}));
  c->add_option("--timeout", flags->timeout, "for one property")->capture_default_str();
  add_load(*c, flags->selection);
  c->callback([flags, &program] { program.code = replay(program, *flags); });
}

}  // namespace attest
