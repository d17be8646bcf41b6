// From a failing source to the smallest one that fails in the same way.
#pragma once

#include <chrono>
#include <functional>

#include "harness/case_domain.h"
#include "harness/job.h"

namespace attest {

struct Inputs;

/// A candidate that hangs is given up after this, or the user's time-out if that is shorter: the minimum is judged again with
/// the full time.
inline constexpr std::chrono::milliseconds kProbeTimeout{3000};

struct ShrinkTask {
  Cell cell;
  Source source;       // fails
  Verdict verdict;     // how
  CaseDomain domain;   // cases stay inside
  int64_t max_probes = 2000;
  std::chrono::seconds max_time{180};
  /// Judges the cell on a source. `final`: the minimum, run again with the full timeout, and kept as a record.
  std::function<Verdict(const Source&, bool final)> probe;
  /// The inputs of a source, to know which edits fit.
  std::function<Inputs(const Source&)> inputs_of;
  /// Whether to end with what there is; empty: never.
  std::function<bool()> interrupted{};
};

struct ShrinkResult {
  Source minimum;
  Verdict verdict;     // of the minimum, run again; kFlaky when it then came out otherwise
  int64_t shrinks = 0, probes = 0;
  /// There may be a smaller one; and where running it again gave no verdict in time, `verdict` is that of the first run.
  bool interrupted = false;
};

/// First the Case shrinks (harness/generate.h; its seed may change), then the data are simplified (harness/edit.h).
ShrinkResult shrink(const ShrinkTask& task);

}  // namespace attest
