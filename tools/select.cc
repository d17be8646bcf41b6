#include "tools/select.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

#include "harness/error.h"
#include "harness/property.h"
#include "kernels/torch_call.h"
#include "tools/check_records.h"

namespace attest {
namespace {

bool matches(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& p) { return fnmatch(p.c_str(), name.c_str(), 0) == 0; });
}

template <class T>
void require_matches(const std::vector<std::string>& patterns, const char* what) {
  for (const std::string& pattern : patterns) {
    const auto all = Registry<T>::instance().all();
    if (std::none_of(all.begin(), all.end(), [&](const T* r) { return fnmatch(pattern.c_str(), r->name.c_str(), 0) == 0; }))
      throw UsageError(fmt::format("no {} matches '{}'; see attest list", what, pattern));
  }
}

}  // namespace

bool is_faulty(const std::string& variant) { return variant.starts_with("faulty."); }

void prepare(const Selection& selection) {
  for (const std::string& library : selection.load) load_operators(library);
  if (!selection.load.empty()) check_records();
  for (const std::string& name : selection.variants) {
    if (!name.starts_with("torch:") || Registry<KernelVariant>::instance().find(name) != nullptr) continue;
    Registry<KernelVariant>::instance().add(torch_operator_variant(name.substr(6), selection.device.value_or(Device::kCpu)));
  }
}

EnumSet<Op> selected_ops(const Selection& selection) {
  if (selection.ops.empty()) return EnumSet<Op>::all();
  EnumSet<Op> ops;
  for (const std::string& name : selection.ops) {
    Op op;
    if (!from_name(name, op)) throw UsageError(fmt::format("there is no operator '{}'; see attest list ops", name));
    ops = ops | EnumSet<Op>{op};
  }
  return ops;
}

std::vector<std::string> selected_variants(const Selection& selection) {
  require_matches<KernelVariant>(selection.variants, "variant");
  const EnumSet<Op> ops = selected_ops(selection);
  std::vector<std::string> names;
  for (const KernelVariant* v : Registry<KernelVariant>::instance().all()) {
    const bool named = selection.variants.empty() ? !is_faulty(v->name) : matches(selection.variants, v->name);
    if (named && ops.contains(v->op) && (!selection.device || v->device == *selection.device)) names.push_back(v->name);
  }
  if (names.empty())
    throw UsageError("no variant is left: --op, --variant and --device exclude each other; see attest list variants");
  return names;
}

std::vector<std::string> selected_properties(const Selection& selection) {
  require_matches<Property>(selection.properties, "property");
  std::vector<std::string> names;
  for (const Property* p : Registry<Property>::instance().all())
    if (selection.properties.empty() || matches(selection.properties, p->name)) names.push_back(p->name);
  return names;
}

}  // namespace attest
