// The subcommands of `attest`. Each adds itself to the command line; its callback returns an exit code through `code`.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace attest {

/// What main knows and commands need.
struct Program {
  std::string path;  // of this executable
  int code = 0;      // what the command that ran returns
};

void add_list(CLI::App& app, Program& program);
void add_run(CLI::App& app, Program& program);
void add_replay(CLI::App& app, Program& program);
void add_shrink(CLI::App& app, Program& program);
void add_report(CLI::App& app, Program& program);
void add_bench(CLI::App& app, Program& program);
void add_bench_oracles(CLI::App& bench, Program& program);
void add_bench_model(CLI::App& bench, Program& program);
void add_audit(CLI::App& app, Program& program);
void add_worker(CLI::App& app, Program& program);

}  // namespace attest
