// attest bench model: what a step of a small decoder costs, and what part of it is attention.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "build_info.h"
#include "harness/error.h"
#include "reports/report.h"
#include "tools/bench/model.h"
#include "tools/bench/result.h"
#include "tools/commands.h"
#include "tools/flags.h"
#include "tools/machine.h"

namespace attest {
namespace {

using bench::ModelRow;
using bench::StepTimes;

struct ModelBenchFlags {
  bench::ModelBenchPlan plan{.shape = {}, .prompts = {67, 512, 2048, 16384}, .batches = {1, 8}};
  std::string device = "cuda", out;
};

std::string text_of(const StepTimes& t) { return fmt::format("{:>10.3f} {:>10}", t.events, t.graph ? fmt::format("{:.3f}", *t.graph) : "-"); }

/// Of attention in a cached step, both by graph where there is one.
double share(const ModelRow& row) {
  return row.cached.graph ? *row.attention.graph / *row.cached.graph : row.attention.events / row.cached.events;
}

void print(const ModelRow& row) {
  fmt::print("{:>8} {:>6} {} {} {} {:>9.0f} %\n", row.prompt, row.batch, text_of(row.cached), text_of(row.recomputed),
             text_of(row.attention), 100 * share(row));
  std::fflush(stdout);
}

nlohmann::json encoded(const StepTimes& t) {
  nlohmann::json json = {{"events_ms", t.events}};
  if (t.graph) json["graph_ms"] = *t.graph;
  return json;
}

nlohmann::json encoded(const ModelRow& row) {
  return {{"prompt", row.prompt},
          {"batch", row.batch},
          {"cached", encoded(row.cached)},
          {"recomputed", encoded(row.recomputed)},
          {"attention", encoded(row.attention)},
          {"attention_share", share(row)}};
}

nlohmann::json encoded(const model::Shape& s) {
  return {{"vocabulary", s.vocabulary}, {"layers", s.layers},           {"hidden", s.hidden}, {"num_heads_q", s.num_heads_q},
          {"num_heads_kv", s.num_heads_kv}, {"head_dim", s.head_dim}, {"mlp", s.mlp}};
}

int run(ModelBenchFlags& flags) {
  from_name(flags.device, flags.plan.device);
  if (flags.plan.device == Device::kCuda && why_no_gpu()) {
    fmt::print(stderr, "attest bench model needs a GPU, and there is none to use ({}); --device cpu --prompt 67 measures a short "
               "prompt on the CPU.\n", *why_no_gpu());
    return static_cast<int>(ExitCode::kNothingRan);
  }
  fmt::print("{:>8} {:>6} {:>21} {:>21} {:>21} {:>11}\n", "prompt", "batch", "cached step, ms", "recomputed, ms", "attention, ms", "share");
  nlohmann::json json = {{"format", "attest model bench 1"},
                         {"commit", kCommit},
                         {"date", fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)))},
                         {"machine", machine_provenance()},
                         {"kernels_sha256", bench::kernel_hashes()},
                         {"model", encoded(flags.plan.shape)},
                         {"repeats", flags.plan.repeats},
                         {"rows", nlohmann::json::array()}};
  for (const ModelRow& row : bench::bench_model(flags.plan, print)) json["rows"].push_back(encoded(row));
  if (flags.out.empty()) return static_cast<int>(ExitCode::kAllPassed);
  write_file(flags.out, json.dump(1) + "\n");
  fmt::print("Results: {}\n", flags.out);
  return static_cast<int>(ExitCode::kAllPassed);
}

}  // namespace

void add_bench_model(CLI::App& bench, Program& program) {
  auto flags = std::make_shared<ModelBenchFlags>();
  CLI::App* c = bench.add_subcommand("model", "Time a step of a small decoder with a KV cache and without; events, then a CUDA graph");
  c->add_option("--prompt", flags->plan.prompts, "tokens before the step")->capture_default_str()->check(CLI::Range(1, 1 << 20));
  c->add_option("--batch", flags->plan.batches, "sequences")->capture_default_str()->check(CLI::Range(1, 4096));
  c->add_option("--repeats", flags->plan.repeats, "timed runs of a cached step; a tenth of it of a recomputed one")
      ->capture_default_str()
      ->check(CLI::Range(3, 100000));
  c->add_option("--device", flags->device, "cuda or cpu")->capture_default_str()->check(CLI::IsMember({"cpu", "cuda"}));
  c->add_option("--out", flags->out, "JSON file")->check(not_empty());
  c->callback([flags, &program] { program.code = run(*flags); });
}

}  // namespace attest
