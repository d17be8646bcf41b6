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

namespace attest {
namespace {

struct ShrinkFlags {
  std::string fixture, out, timeout = "20s";
  Selection selection;
};

class FixtureShrinker {
 public:
  FixtureShrinker(const Program& program, const ShrinkFlags& flags)
      : flags_(flags),
        timeout_(parse_duration(flags.timeout, "--timeout")),
        record_(read_fixture(flags.fixture)),
        hooks_(campaign_hooks(program, flags.selection, std::filesystem::temp_directory_path().string())) {}

  int run() {
    for (const Cell& cell : cells_of(record_, flags_.fixture, flags_.selection)) {
      WorkerProcess worker = hooks_.make_worker(Registry<KernelVariant>::instance().find(cell.variant)->device, 0);
      const Source source{std::nullopt, flags_.fixture, {}};
      const Verdict verdict = judge(worker, cell, source, "");
      if (is_failure(verdict.status) || verdict.status == Status::kNotPromised) return shrink_cell(worker, cell, source, verdict);
    }
    fmt::print("{}: nothing fails on it here, so there is nothing to shrink; name a variant with --variant\n", flags_.fixture);
    return static_cast<int>(ExitCode::kNothingRan);
  }

 private:
  int shrink_cell(WorkerProcess& worker, const Cell& cell, const Source& source, const Verdict& verdict) {
    const std::string out =
        flags_.out.empty() ? std::filesystem::path(flags_.fixture).replace_extension(".min.h5").string() : flags_.out;
    const auto* variant = Registry<KernelVariant>::instance().find(cell.variant);
    const auto* property = Registry<Property>::instance().find(cell.property);
    const ShrinkResult minimum =
        shrink({cell, source, verdict, variant->domain & property->domain, 2000, std::chrono::seconds(300),
                [&](const Source& s, bool final) { return judge(worker, cell, s, final ? out : ""); },
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
    fmt::print("{}", counterexample_text(shown));
    return static_cast<int>(ExitCode::kKernelWrong);
  }

  Verdict judge(WorkerProcess& worker, const Cell& cell, const Source& source, const std::string& record) {
    JobResult result = worker.work({source, {cell}, record}, timeout_);
    if (result.verdicts.empty()) return {Status::kHarnessError, "the worker gave no verdict", {}};
    const Verdict verdict = result.verdicts.back().verdict;
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
  CampaignHooks hooks_;
};

}  // namespace

void add_shrink(CLI::App& app, Program& program) {
  auto flags = std::make_shared<ShrinkFlags>();
  CLI::App* c = app.add_subcommand("shrink", "Make a fixture smaller while it still fails");
  c->add_option("fixture", flags->fixture, "fixture file (.h5)")->required();
  c->add_option("--out", flags->out, "where the minimum goes (default: NAME.min.h5)");
  c->add_option("--variant", flags->selection.variants,
                "which variant fails (default: the recorded one, else the first that does)");
  c->add_option("--property", flags->selection.properties, "which property fails (default: likewise)");
  c->add_option("--timeout", flags->timeout, "for one property")->capture_default_str();
  add_load(*c, flags->selection);
  c->callback([flags, &program] {
    prepare(flags->selection);
    program.code = FixtureShrinker(program, *flags).run();
  });
}

}  // namespace attest
