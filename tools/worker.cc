// attest worker: the process that runs kernels. Started by attest itself; not for people.
#include <CLI/CLI.hpp>

#include "fixtures/fixture.h"
#include "harness/tensors.h"
#include "harness/worker.h"
#include "tools/commands.h"
#include "tools/flags.h"
#include "tools/machine.h"

namespace attest {

void add_worker(CLI::App& app, Program& program) {
  struct Flags {
    Selection selection;
    std::string device;
    bool unfilled_outputs = false;
    WorkerOptions options;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* c = app.add_subcommand("worker", "")->group("");
  c->add_flag("--cuda", flags->options.cuda);
  c->add_option("--device", flags->device);
  c->add_flag("--unfilled-outputs", flags->unfilled_outputs);
  c->add_option("--load", flags->selection.load);
  c->add_option("--variant", flags->selection.variants);
  c->callback([flags, &program] {
    if (Device device; from_name(flags->device, device)) flags->selection.device = device;
    poison_fresh(!flags->unfilled_outputs);
    prepare(flags->selection);
    flags->options.provenance = machine_provenance();
    if (!flags->selection.load.empty()) flags->options.provenance["load"] = load_arguments(flags->selection);
    program.code = run_worker(flags->options, {read_fixture, write_fixture});
  });
}

}  // namespace attest
