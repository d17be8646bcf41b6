#include "tools/check_records.h"

#include <fmt/format.h>

#include "harness/error.h"
#include "harness/oracle.h"
#include "harness/printable.h"
#include "harness/property.h"
#include "harness/variant.h"

namespace attest {
namespace {

constexpr char kNameCharacters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:@+-";

/// Names stand in file names, shell patterns and tables.
void check_name(const char* what, const std::string& name) {
  if (name.empty()) throw Error(fmt::format("a registered {} has no name", what));
  if (name.find_first_not_of(kNameCharacters) != std::string::npos)
    throw Error(fmt::format("the {} '{}' has a name with other characters than A-Z a-z 0-9 _ . : @ + -", what, printable(name)));
}

template <class T>
void check_registry(const char* what) {
  const auto& registry = Registry<T>::instance();
  if (registry.all().empty()) throw Error(fmt::format("no {} is registered: the program was linked wrongly", what));
  for (const std::string& name : registry.duplicates())
    throw Error(fmt::format("two {} records are called {}: rename one", what, printable(name)));
  for (const T* record : registry.all()) check_name(what, record->name);
}

void check_function(bool given, const char* what, const std::string& name, const char* function) {
  if (!given) throw Error(fmt::format("the {} {} has no .{}", what, name, function));
}

void check_law(const KernelVariant& variant, const char* lists_it, const std::string& property) {
  if (Registry<Property>::instance().find(property) == nullptr)
    throw Error(fmt::format("the variant {} {} '{}', which is no property; see attest list properties", variant.name, lists_it,
                            printable(property)));
}

void check_variant(const KernelVariant& variant) {
  check_function(variant.run != nullptr, "variant", variant.name, "run");
  for (const std::string& property : variant.promises) check_law(variant, "promises", property);
  for (const auto& [property, why] : variant.known_failures) check_law(variant, "has the known failure", property);
}

void check_oracle(const Oracle& oracle) {
  check_function(oracle.evaluate != nullptr, "oracle", oracle.name, "evaluate");
  if (oracle.tiers.empty()) throw Error(fmt::format("the oracle {} has no .tiers: name at least one", oracle.name));
}

}  // namespace

void check_records() {
  check_registry<KernelVariant>("variant");
  check_registry<Property>("property");
  check_registry<Oracle>("oracle");
  for (const Property* p : Registry<Property>::instance().all())
    check_function(p->check != nullptr, "property", p->name, "check");
  for (const Oracle* o : Registry<Oracle>::instance().all()) check_oracle(*o);
  for (const KernelVariant* v : Registry<KernelVariant>::instance().all()) check_variant(*v);
}

}  // namespace attest
