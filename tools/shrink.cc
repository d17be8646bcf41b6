// attest shrink: makes a fixture smaller, also one that no Case made (a user's own data).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "fixtures/fixture.h"
#include "harness/edit.h"
#include "harness/error.h"
#include "harness/property.h"
#include "harness/shrink.h"
#include "reports/grid.h"
#include "tools/commands.h"
#include "tools/flags.h"
#include "tools/fixture_cells.h"
#include "tools/machine.h"
#include "tools/progress.h"

namespace attest {
namespace {

struct ShrinkFlags {
  std::string fixture, out, timeout = "20s";
  Selection selection;
};

/// NAME.min.h5 beside NAME.h5; NAME.min-2.h5, … when there is one already.
std::string free_name(const std::string& fixture) {
  namespace fs = std::filesystem;
  fs::path path = fs::path(fixture).replace_extension(".min.h5");
  for (int n = 2; fs::exists(path); ++n) path = fs::path(fixture).replace_extension(fmt::format(".min-{}.h5", n));
  return path.string();
}

Verdict verdict_of(const JobResult& result) {
  if (result.verdicts.empty()) return {Status::kHarnessError, "the worker gave no verdict", {}};
  return result.verdicts.back().verdict;
}

class FixtureShrinker {
 public:
  FixtureShrinker(const Program& program, const ShrinkFlags& flags)
      : flags_(flags),
        timeout_(parse_duration(flags.timeout, "--timeout")),
        record_(read_fixture(flags.fixture)),
        selection_(flags.selection) {
    prepare_for(record_, flags.fixture, selection_);
    hooks_ = campaign_hooks(program, selection_, std::filesystem::temp_directory_path().string());
  }

  int run() {
    bool judged = false;
    for (const Cell& cell : cells_of(record_, flags_.fixture, selection_)) {
      const Device device = Registry<KernelVariant>::instance().find(cell.variant)->device;
      if (device == Device::kCuda && why_no_gpu()) {
        fmt::print("{}: needs a GPU  {} × {}\n  {}\n", flags_.fixture, cell.variant, cell.property, *why_no_gpu());
        continue;
      }
      WorkerProcess worker = hooks_.make_worker(device, 0);
      judged = true;
      const Source source{std::nullopt, flags_.fixture, {}};
      const Verdict verdict = verdict_of(worker.work_and_confirm({source, {cell}, ""}, timeout_));
      if (is_failure(verdict.status) || verdict.status == Status::kNotPromised) return shrink_cell(worker, cell, source, verdict);
    }
    if (judged)
      fmt::print("{}: nothing fails on it here, so there is nothing to shrink; name a variant with --variant\n", flags_.fixture);
    return static_cast<int>(ExitCode::kNothingRan);
  }

 private:
  int shrink_cell(WorkerProcess& worker, const Cell& cell, const Source& source, const Verdict& verdict) {
    const std::string out = flags_.out.empty() ? free_name(flags_.fixture) : flags_.out;
    const auto* variant = Registry<KernelVariant>::instance().find(cell.variant);
    const auto* property = Registry<Property>::instance().find(cell.property);
    const ShrinkResult minimum =
        shrink({cell, source, verdict, variant->domain & property->domain, 2000, std::chrono::seconds(300),
                [&](const Source& s, bool final) { return probe(worker, cell, s, final ? out : ""); },
                [&](const Source& s) { return inputs_of(s); }});
    CellResult shown{cell};
    shown.status = minimum.verdict.status;
    shown.sentence = minimum.verdict.sentence;
    shown.worst = minimum.verdict;
    shown.source = minimum.minimum;
    shown.cases_before = 1;
    shown.shrinks = minimum.shrinks;
    shown.probes = minimum.probes;
    shown.fixture = out;
    shown.load = selection_.load;
    fmt::print("{}", counterexample_text(shown));
    return static_cast<int>(ExitCode::kKernelWrong);
  }

  /// A candidate, or with a `record` the minimum.
  Verdict probe(WorkerProcess& worker, const Cell& cell, const Source& source, const std::string& record) {
    progress_.shrinking(cell, ++probes_);
    const JobResult result = record.empty() ? worker.work({source, {cell}, ""}, std::min(timeout_, kProbeTimeout))
                                            : worker.work_and_confirm({source, {cell}, record}, timeout_);
    const Verdict verdict = verdict_of(result);
    if (!record.empty() && (verdict.status == Status::kCrashed || verdict.status == Status::kTimedOut))
      amend_verdict(record, verdict);
    return verdict;
  }

  Inputs inputs_of(const Source& source) const {
    Inputs inputs = record_.inputs;
    for (const std::string& edit : source.edits) inputs = apply_edit(inputs, edit);
    return inputs;
  }

  const ShrinkFlags& flags_;
  std::chrono::milliseconds timeout_;
  Record record_;
  Selection selection_;
  CampaignHooks hooks_;
  Progress progress_;
  int64_t probes_ = 0;
};

}  // namespace

void add_shrink(CLI::App& app, Program& program) {
  auto flags = std::make_shared<ShrinkFlags>();
  CLI::App* c = app.add_subcommand("shrink", "Make a fixture smaller while it still fails");
  c->add_option("fixture", flags->fixture, "fixture file (.h5)")->required();
  c->add_option("--out", flags->out, "where the minimum goes (default: NAME.min.h5, never over a file)")->check(not_empty());
  c->add_option("--variant", flags->selection.variants,
                "which variant fails (default: the recorded one, else the first that does)");
  c->add_option("--property", flags->selection.properties, "which property fails (default: likewise)");
  c->add_option("--timeout", flags->timeout, "for one property")->capture_default_str();
  add_load(*c, flags->selection);
  c->callback([flags, &program] {
    std::error_code no_file;
    if (std::filesystem::equivalent(flags->fixture, flags->out, no_file))
      throw UsageError(fmt::format("--out {}: that is the fixture to be shrunk; name another file", flags->out));
    program.code = FixtureShrinker(program, *flags).run();
  });
}

}  // namespace attest
