// Which variants and properties a command line names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/attention_problem.h"

namespace attest {

struct Selection {
  std::vector<std::string> ops;                   // names; empty: all
  std::vector<std::string> variants, properties;  // shell patterns; empty: all (faulty variants only when named)
  std::optional<Device> device;
  std::vector<std::string> load;                  // shared libraries with Torch operators or plug-ins

  bool poison_outputs = true;                     // fill our kernels' outputs with NaN before they run

  bool operator==(const Selection&) const = default;
};

/// Loads libraries and makes the `torch:` variants that are named. Throws UsageError.
void prepare(const Selection& selection);
/// Sorted names; throws UsageError for a pattern that matches nothing.
std::vector<std::string> selected_variants(const Selection& selection);
std::vector<std::string> selected_properties(const Selection& selection);
EnumSet<Op> selected_ops(const Selection& selection);

/// True for names of seeded defects.
bool is_faulty(const std::string& variant);

}  // namespace attest
