#include "tools/fixture_cells.h"

#include <fmt/format.h>

#include "harness/error.h"
#include "harness/property.h"
#include "harness/record.h"

namespace attest {

namespace {

std::string recorded(const Record& record, const char* key) {
  const auto it = record.provenance.find(key);
  return it == record.provenance.end() ? "" : it->second;
}

}  // namespace

void prepare_for(const Record& record, const std::string& path, Selection& selection) {
  const bool is_recorded = selection.variants.empty() && !record.variant.empty();
  if (is_recorded) selection.variants = {record.variant};
  if (Device device; is_recorded && record.variant.starts_with("torch:") && !selection.device &&
                     from_name(recorded(record, "device"), device))
    selection.device = device;
  try {
    prepare(selection);
    selected_variants(selection);
  } catch (const UsageError& e) {
    const std::string load = recorded(record, "load");
    if (!is_recorded || load.empty() || !selection.load.empty()) throw;
    throw UsageError(fmt::format("{}: {}; its variant came from {}", path, e.what(), load));
  }
}

std::vector<Cell> cells_of(const Record& record, const std::string& path, const Selection& selection) {
  Selection wanted = selection;
  wanted.ops = {std::string(name_of(record.inputs.problem.op))};
  if (wanted.properties.empty() && !record.property.empty()) wanted.properties = {record.property};
  std::vector<Cell> cells;
  for (const std::string& variant : selected_variants(wanted))
    for (const std::string& name : selected_properties(wanted)) {
      const Property* property = Registry<Property>::instance().find(name);
      const KernelVariant* record_of = Registry<KernelVariant>::instance().find(variant);
      const bool fits = !property->domain.excludes(record.inputs) && !record_of->domain.excludes(record.inputs);
      if (fits || !selection.properties.empty() || !record.property.empty()) cells.push_back({variant, name});
    }
  if (cells.empty()) throw UsageError(fmt::format("{}: no variant and property are for these inputs", path));
  return cells;
}

}  // namespace attest
