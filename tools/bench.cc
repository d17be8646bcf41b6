// attest bench: how fast the variants are, side by side.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <CLI/CLI.hpp>

#include "build_info.h"
#include "harness/error.h"
#include "reports/report.h"
#include "tools/bench/session.h"
#include "tools/commands.h"
#include "tools/flags.h"
#include "tools/machine.h"
#include "tools/select.h"

namespace attest {
namespace {

using bench::BenchCase;
using bench::Outcome;
using bench::Pass;
using bench::Results;
using bench::Row;

struct BenchFlags {
  Selection selection;
  std::vector<std::string> cases;  // shell patterns
  std::string device = "cuda", pass, out;
  int64_t repeats = 30;
};

const std::map<std::string, Pass> kPasses = {{"forward", Pass::kForward}, {"both", Pass::kBoth}, {"graph", Pass::kGraph}};

/// Of the operators and the device asked for: those named, else all.
std::vector<BenchCase> selected_cases(const BenchFlags& flags, Device device) {
  std::vector<BenchCase> chosen;
  std::vector<std::string> names;
  const EnumSet<Op> ops = selected_ops(flags.selection);
  for (const BenchCase& c : bench::bench_cases()) {
    if (c.device != device || !ops.contains(c.problem.op)) continue;
    const bool named = std::any_of(flags.cases.begin(), flags.cases.end(),
                                   [&](const std::string& pattern) { return fnmatch(pattern.c_str(), c.name.c_str(), 0) == 0; });
    if (flags.cases.empty() || named) chosen.push_back(c);
    if (std::find(names.begin(), names.end(), c.name) == names.end()) names.push_back(c.name);
  }
  if (chosen.empty())
    throw UsageError(fmt::format("no case of --device {} is called that; there are {}", flags.device, fmt::join(names, " ")));
  return chosen;
}

/// Without --pass: forward, both and, where launches are a good part of the time, a graph.
bool wanted(const BenchFlags& flags, Pass pass, const BenchCase& c, Device device) {
  if (flags.pass.empty()) return pass != Pass::kGraph || (device == Device::kCuda && c.problem.seqlen_q <= 16);
  return kPasses.at(flags.pass) == pass;
}

std::vector<bench::Job> jobs_of(const BenchFlags& flags, Device device) {
  std::vector<bench::Job> jobs;
  for (const BenchCase& c : selected_cases(flags, device))
    for (Pass pass : EnumSet<Pass>::all().members())
      if (wanted(flags, pass, c, device)) jobs.push_back({c, pass, device, flags.repeats});
  return jobs;
}

/// No one else's stick-breaking kernel is at hand; the fastest softmax kernel on the same tensors is the yardstick.
constexpr const char* kYardstick = "softmax.torch.cudnn@cuda";

std::vector<const KernelVariant*> variants_of(const std::vector<std::string>& names, Op op, Device device) {
  std::vector<const KernelVariant*> variants;
  for (const std::string& name : names) {
    const KernelVariant* v = Registry<KernelVariant>::instance().find(name);
    if (v->op == op) variants.push_back(v);
  }
  const KernelVariant* yardstick = Registry<KernelVariant>::instance().find(kYardstick);
  if (op == Op::kStickBreaking && device == Device::kCuda && yardstick != nullptr) variants.push_back(yardstick);
  return variants;
}

/// Collects, prints and keeps what is measured; the files are whole after every case.
class Keeper {
 public:
  Keeper(const BenchFlags& flags, EnumSet<Op> ops) : flags_(flags), ops_(ops) {
    results_.kernels = bench::kernel_hashes();
    results_.commit = kCommit;
    results_.date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
  }

  void machine(const std::map<std::string, std::string>& provenance) {
    results_.machine = provenance;
    results_.gpu = "cpu";
    if (flags_.device == "cuda" && provenance.contains("gpu")) {  // "NVIDIA H200, 580.95.05"
      const std::string& text = provenance.at("gpu");
      const size_t comma = text.rfind(", ");
      results_.gpu = text.substr(0, comma);
      if (comma != std::string::npos) results_.driver = text.substr(comma + 2);
    }
    results_.roof = bench::roof_of(results_.gpu);
    fmt::print("{}   {} repeats   commit {}\n\n", results_.gpu == "cpu" ? provenance.at("processor") : results_.gpu,
               flags_.repeats, kCommit);
  }

  void job_done(const std::vector<Row>& rows) {
    results_.rows.insert(results_.rows.end(), rows.begin(), rows.end());
    fmt::print("{}\n", bench::text_table(rows, results_.roof));
    std::fflush(stdout);
    for (const auto& [path, text] : files()) write_file(path, text);
  }

  /// --out holds everything; else a file an operator, for GPUs alone.
  std::map<std::string, std::string> files() const {
    if (!flags_.out.empty()) return {{flags_.out, bench::encode(results_)}};
    if (flags_.device == "cpu") return {};
    std::map<std::string, std::string> files;
    for (Op op : ops_.members()) {
      const Results part = bench::only(op, results_);
      if (!part.rows.empty())
        files[fmt::format("{}/reports/results/{}", kSourceDir, bench::file_name(op, part))] = bench::encode(part);
    }
    return files;
  }

  int finish() const {
    for (const auto& [path, text] : files()) fmt::print("Results: {}\n", path);
    if (files().empty()) fmt::print("Not kept; --out FILE keeps them.\n");
    const auto any = [&](auto... outcome) {
      return std::any_of(results_.rows.begin(), results_.rows.end(),
                         [&](const Row& r) { return ((r.outcome == outcome) || ...); });
    };
    if (any(Outcome::kLaunchError, Outcome::kCrashed)) return static_cast<int>(ExitCode::kKernelWrong);
    return static_cast<int>(any(Outcome::kMeasured) ? ExitCode::kAllPassed : ExitCode::kNothingRan);
  }

 private:
  const BenchFlags& flags_;
  EnumSet<Op> ops_;
  Results results_;
};

int run(BenchFlags& flags) {
  Device device = Device::kCuda;
  from_name(flags.device, device);
  flags.selection.device = device;
  prepare(flags.selection);
  const std::vector<std::string> names = selected_variants(flags.selection);
  const bench::SessionPlan plan{jobs_of(flags, device), device, [&](Op op) { return variants_of(names, op, device); },
                                machine_provenance};
  Keeper keeper(flags, selected_ops(flags.selection));
  try {
    bench::run_session(plan,
                       {[&](const auto& machine) { keeper.machine(machine); }, [&](const auto& rows) { keeper.job_done(rows); }});
  } catch (const bench::NeedsGpu& e) {
    fmt::print(stderr, "attest bench needs a GPU, and there is none to use ({}); --device cpu measures small cases on the CPU.\n",
               e.what());
    return static_cast<int>(ExitCode::kNothingRan);
  }
  return keeper.finish();
}

}  // namespace

void add_bench(CLI::App& app, Program& program) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* c = app.add_subcommand("bench", "Time variants side by side on the shapes of real models");
  c->add_option("--op", flags->selection.ops, "operators (default: all)");
  c->add_option("--variant", flags->selection.variants,
                "variants, as shell patterns; torch:ns::op runs any Torch operator (default: all but faulty.*)");
  c->add_option("--case", flags->cases, "cases of the device, as shell patterns, e.g. 'prefill-*' (default: all)");
  c->add_option("--pass", flags->pass, "forward; both: forward and backward in one run; graph: forward from a CUDA graph "
                "(default: each, a graph for few queries)")
      ->check(CLI::IsMember({"forward", "both", "graph"}));
  c->add_option("--repeats", flags->repeats, "timed runs of each")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{30}, int64_t{1000000}));
  c->add_option("--device", flags->device, "cuda or cpu")->capture_default_str()->check(CLI::IsMember({"cpu", "cuda"}));
  add_load(*c, flags->selection);
  c->add_option("--out", flags->out, "JSON file (default on a GPU: reports/results/<op>-<gpu>-<date>.json)")->check(not_empty());
  add_bench_oracles(*c, program);
  add_bench_model(*c, program);
  c->callback([flags, c, &program] {
    if (c->get_subcommands().empty()) program.code = run(*flags);
  });
}

}  // namespace attest
