// attest run: the main job. Generates, judges, shrinks, stores, reports.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>

#include "build_info.h"
#include "harness/error.h"
#include "harness/printable.h"
#include "reports/grid.h"
#include "reports/report.h"
#include "tools/bench/result.h"
#include "tools/commands.h"
#include "tools/flags.h"
#include "tools/machine.h"
#include "tools/progress.h"
#include "tools/select.h"

namespace attest {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct RunFlags {
  Selection selection;
  std::string device, budget, case_text, timeout = "20s", out, resume;
  int64_t cases = 200, max_work = int64_t{1} << 18;
  std::optional<uint64_t> seed;
  int jobs = 0;
  bool no_shrink = false, no_regression = false;
};

/// What a run needs to be continued: run.json in its folder. Names, not patterns, so that it means the same later.
json encode(const CampaignOptions& o, const Selection& s) {
  json j{{"format", "attest run 1"},
         {"variants", o.variants},
         {"properties", o.properties},
         {"rotate_variants", o.rotate_variants},
         {"cases", o.cases},
         {"max_work", o.domain.max_work},
         {"seed", o.seed},
         {"timeout_ms", o.timeout.count()},
         {"fixtures", o.fixtures},
         {"shrink", o.shrink},
         {"provenance", o.provenance},
         {"ops", s.ops},
         {"load", s.load},
         {"patterns", s.variants},
         {"poison_outputs", s.poison_outputs}};
  if (o.budget) j["budget_s"] = o.budget->count();
  if (o.only) j["case"] = to_string(*o.only);
  if (s.device) j["device"] = name_of(*s.device);
  return j;
}

void decode(const json& j, CampaignOptions& o, Selection& s) {
  if (j.value("format", "") != "attest run 1") throw UsageError("it was written by another version");
  j.at("variants").get_to(o.variants);
  j.at("properties").get_to(o.properties);
  j.at("rotate_variants").get_to(o.rotate_variants);
  j.at("cases").get_to(o.cases);
  j.at("max_work").get_to(o.domain.max_work);
  j.at("seed").get_to(o.seed);
  o.timeout = std::chrono::milliseconds(j.at("timeout_ms").get<int64_t>());
  j.at("fixtures").get_to(o.fixtures);
  j.at("shrink").get_to(o.shrink);
  j.at("provenance").get_to(o.provenance);
  j.at("ops").get_to(s.ops);
  j.at("load").get_to(s.load);
  j.at("patterns").get_to(s.variants);
  s.poison_outputs = j.value("poison_outputs", true);
  if (j.contains("budget_s")) o.budget = std::chrono::seconds(j.at("budget_s").get<int64_t>());
  if (j.contains("case")) o.only = parse_case(j.at("case").get<std::string>());
  if (Device device; j.contains("device") && from_name(j.at("device").get<std::string>(), device)) s.device = device;
}

void resume(const std::string& folder, CampaignOptions& options, Selection& selection) {
  std::ifstream file(folder + "/run.json");
  if (!file) throw UsageError(fmt::format("{} is no run folder: it has no run.json", folder));
  try {
    decode(json::parse(file), options, selection);
  } catch (const json::exception&) {
    throw UsageError(fmt::format("{}/run.json is damaged, so the run cannot be continued: start a new one", folder));
  } catch (const Error& e) {
    throw UsageError(fmt::format("{}/run.json cannot be used: {}; start a new run", folder, e.what()));
  }
  options.out = folder;
}

std::string new_folder(const std::string& wanted) {
  const std::string folder = wanted.empty() ? fmt::format("runs/{:%Y%m%d-%H%M%S}", fmt::gmtime(std::time(nullptr))) : wanted;
  std::string unique = folder;
  for (int n = 2; wanted.empty() && fs::exists(unique); ++n) unique = fmt::format("{}-{}", folder, n);
  if (fs::exists(unique + "/journal.jsonl"))
    throw UsageError(fmt::format("{} holds a run already: continue it with --resume {}, or name another folder", unique, unique));
  std::error_code failed;
  fs::create_directories(unique, failed);
  if (failed) throw UsageError(fmt::format("cannot make the run folder {}: {}", unique, failed.message()));
  return unique;
}

std::vector<std::string> regression_fixtures() {
  std::vector<std::string> paths;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(std::string(kSourceDir) + "/fixtures/regression", none))
    if (entry.path().extension() == ".h5") paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// Of two words for one thing parse_case takes the last; a user who gives both has made a mistake.
void refuse_repeated_words(const std::string& text) {
  std::set<std::string> given;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    Dtype dtype;
    const std::string what = from_name(word, dtype) ? "a dtype" : word.substr(0, word.find('='));
    if (!given.insert(what).second) throw UsageError(fmt::format("--case gives {} twice, the second time as '{}'", what, word));
  }
}

void start(RunFlags& flags, CampaignOptions& options) {
  Selection& s = flags.selection;
  if (Device device; !flags.device.empty() && from_name(flags.device, device)) s.device = device;
  prepare(s);
  options.variants = selected_variants(s);
  options.properties = selected_properties(s);
  options.rotate_variants = !s.variants.empty();
  options.domain.ops = selected_ops(s);
  options.cases = flags.cases;
  options.domain.max_work = flags.max_work;
  if (!flags.budget.empty()) options.budget = std::chrono::ceil<std::chrono::seconds>(parse_duration(flags.budget, "--budget"));
  refuse_repeated_words(flags.case_text);
  if (!flags.case_text.empty()) options.only = parse_case(flags.case_text);
  if (options.only)
    if (auto why = options.only->invalid_reason()) throw UsageError(fmt::format("--case is refused: {}", *why));
  if (!options.only && !flags.no_regression) options.fixtures = regression_fixtures();
  options.seed = flags.seed.value_or((uint64_t{std::random_device{}()} << 16) ^ std::random_device{}());
  options.timeout = parse_duration(flags.timeout, "--timeout");
  options.shrink = !flags.no_shrink;
  options.out = new_folder(flags.out);
  options.provenance = machine_provenance();
  options.provenance["seed"] = std::to_string(options.seed);
  for (const auto& [folder, hash] : bench::kernel_hashes()) options.provenance["kernels_sha256." + folder] = hash;
  write_file(options.out + "/run.json", encode(options, s).dump(1) + "\n");
}

int run(const Program& program, RunFlags& flags) {
  CampaignOptions options;
  if (flags.resume.empty()) {
    start(flags, options);
  } else {
    resume(flags.resume, options, flags.selection);
    prepare(flags.selection);
    options.domain.ops = selected_ops(flags.selection);
  }
  options.load = flags.selection.load;
  options.jobs = flags.jobs > 0 ? flags.jobs : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  fmt::print("seed {}   {} variants, {} properties   {}\n", options.seed, options.variants.size(), options.properties.size(),
             options.out);
  std::fflush(stdout);
  Progress progress;
  CampaignHooks hooks = campaign_hooks(program, flags.selection, options.out);
  finish_when_interrupted(hooks);
  const CampaignResult result = run_campaign(options, hooks, progress);
  write_file(options.out + "/report.json", json_report(result));
  write_file(options.out + "/report.md", markdown_report(result));
  fmt::print("\n{}", text_report(result));
  if (hooks.interrupted()) fmt::print("Interrupted. Continue with: attest run --resume {}\n", shell_word(options.out));
  fmt::print("Reports: {0}/report.md, {0}/report.json\n", options.out);
  return exit_code(result);
}

}  // namespace

void add_run(CLI::App& app, Program& program) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* c = app.add_subcommand("run", "Run properties against variants, shrink and keep what fails, report");
  Selection& s = flags->selection;
  c->add_option("--op", s.ops, "operators (default: all)");
  c->add_option("--variant", s.variants,
                "variants, as shell patterns; torch:ns::op runs any Torch operator (default: all but faulty.*)");
  c->add_option("--property", s.properties, "properties, as shell patterns (default: all)");
  auto* cases = c->add_option("--cases", flags->cases, "cases per operator")
                    ->capture_default_str()
                    ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  auto* budget = c->add_option("--budget", flags->budget, "generate cases for this long, e.g. 30m")
                     ->check(not_empty())
                     ->excludes(cases);
  c->add_option("--max-work", flags->max_work, "the largest case, as B * Hq * Sq * Skv * (D + Dv)")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  c->add_option("--case", flags->case_text, "this one case, e.g. 'op=softmax B=1 Hq=1 Hkv=1 Sq=4 Skv=65 D=16 bf16 causal'")
      ->check(not_empty())
      ->excludes(cases)
      ->excludes(budget);
  c->add_option("--seed", flags->seed, "the same seed gives the same cases on every machine (default: drawn, and printed)")
      ->check(natural_number());
  c->add_option("--device", flags->device, "only variants of this device")->check(CLI::IsMember({"cpu", "cuda"}));
  auto* jobs = c->add_option("--jobs", flags->jobs, "worker processes (default: one a core)")->check(CLI::Range(1, 1024));
  c->add_option("--timeout", flags->timeout, "for one property on one case")->capture_default_str();
  add_load(*c, s);
  c->add_option("--out", flags->out, "run folder (default: runs/<time>)")->check(not_empty());
  c->add_flag("!--unfilled-outputs", s.poison_outputs, "leave outputs as they were allocated, for compute-sanitizer initcheck");
  c->add_flag("--no-shrink", flags->no_shrink, "report the first failing case as it is");
  c->add_flag("--no-regression", flags->no_regression, "do not replay fixtures/regression first");
  const auto is_kept = [&](const CLI::Option* o) { return o != jobs && o != c->get_help_ptr(); };
  const std::vector<CLI::Option*> kept = c->get_options(is_kept);
  auto* resume = c->add_option("--resume", flags->resume, "continue the run in this folder with its own options; takes --jobs")
                     ->check(not_empty());
  for (CLI::Option* option : kept) resume->excludes(option);
  c->callback([flags, &program] { program.code = run(program, *flags); });
}

}  // namespace attest
