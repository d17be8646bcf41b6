// attest list: what is registered.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "harness/oracle.h"
#include "harness/property.h"
#include "tools/commands.h"
#include "tools/select.h"

namespace attest {
namespace {

void list_ops() {
  for (Op op : EnumSet<Op>::all().members()) fmt::print("{}\n", name_of(op));
}

void list_variants() {
  for (const KernelVariant* v : Registry<KernelVariant>::instance().all()) {
    fmt::print("{:<40} {:<5} {}\n", v->name, name_of(v->device), v->summary);
    if (!v->faulty_caught_by.empty()) fmt::print("{:<46} seeded defect, caught by {}\n", "", v->faulty_caught_by);
  }
}

void list_properties() {
  for (const Property* p : Registry<Property>::instance().all()) fmt::print("{:<40} {}\n", p->name, p->law);
}

void list_oracles() {
  for (const Oracle* o : Registry<Oracle>::instance().all()) fmt::print("{:<40} {}\n", o->name, o->summary);
}

}  // namespace

void add_list(CLI::App& app, Program&) {
  auto what = std::make_shared<std::string>();
  CLI::App* c = app.add_subcommand("list", "List operators, variants, properties or oracles");
  c->add_option("what", *what, "ops, variants, properties or oracles (default: all)")
      ->check(CLI::IsMember({"ops", "variants", "properties", "oracles"}));
  c->callback([what] {
    const std::pair<const char*, void (*)()> kinds[] = {
        {"ops", list_ops}, {"variants", list_variants}, {"properties", list_properties}, {"oracles", list_oracles}};
    for (const auto& [name, list] : kinds) {
      if (!what->empty() && *what != name) continue;
      if (what->empty()) fmt::print("{}:\n", name);
      list();
      if (what->empty()) fmt::print("\n");
    }
  });
}

}  // namespace attest
