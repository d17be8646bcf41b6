// A campaign: cases for each operator, given to every cell (variant × property) whose domains hold them; the first failure
// of a cell is shrunk and kept, and closes the cell. Results depend on the seed alone, not on timing or the number of jobs.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/case_domain.h"
#include "harness/job.h"

namespace attest {

struct CampaignOptions {
  std::vector<std::string> variants, properties;  // names, selected by the caller
  bool rotate_variants = false;    // also draw cases inside each variant's own domain in turn (variants were named)
  CaseDomain domain = every_case();  // from the command line
  int64_t cases = 200;             // per operator
  std::optional<std::chrono::seconds> budget;  // instead of `cases`
  std::optional<Case> only;        // this case alone
  std::vector<std::string> fixtures;  // given to every cell first: regressions, or what is replayed
  uint64_t seed = 0;
  int jobs = 1;
  std::chrono::milliseconds timeout{20000};
  std::string out;                 // run folder; exists
  std::vector<std::string> load;   // libraries that the workers load: what a replay needs, too
  bool shrink = true;
  std::map<std::string, std::string> provenance;
};

/// What became of one cell.
struct CellResult {
  Cell cell;
  Status status = Status::kVacuous;  // of the cell as a whole
  std::string sentence;
  int64_t passed = 0, vacuous = 0, unsupported = 0, not_promised = 0, known = 0, undecided = 0;
  Verdict worst{Status::kVacuous, "", {}};  // the failing verdict; else the passing one with the least headroom
  Source source;                     // of `worst`; after shrinking the minimum
  Source found;                      // the source that failed first
  std::string fixture;               // path of the counterexample
  std::vector<std::string> load;     // libraries that its replay needs; absolute paths
  int64_t cases_before = 0;          // cases this cell had seen when it failed
  int64_t shrinks = 0, probes = 0;
  std::map<std::string, double> worst_headroom;  // quantity → error / bound, over all passes
  int64_t vacuous_elements = 0, elements = 0;
};

struct CampaignResult {
  std::vector<CellResult> cells;     // sorted by (variant, property)
  std::map<std::string, std::string> provenance;  // versions, seed, machine
  int64_t cases = 0;
  TimeShare time;
  double seconds = 0;
  bool interrupted = false;          // before all cases were judged
};

/// Learns of what happens while it happens. Calls come from one thread at a time.
class CampaignListener {
 public:
  virtual ~CampaignListener() = default;
  virtual void campaign_started(int64_t /*cases; 0 with a budget*/) {}
  virtual void case_finished(int64_t /*done*/, int64_t /*cells failing so far*/) {}
  virtual void shrinking(const Cell& /*cell*/, int64_t /*probes so far*/) {}
  virtual void counterexample_found(const CellResult&) {}
  virtual void campaign_finished(const CampaignResult&) {}
};

class WorkerProcess;
struct Record;

/// What a campaign needs from outside the harness.
struct CampaignHooks {
  std::function<WorkerProcess(Device device, int index)> make_worker;
  std::function<Record(const std::string& path)> load_record;
  std::function<void(const std::string& path, const Verdict& verdict)> amend_record;  // of a kernel that never returned
  std::function<bool()> interrupted;  // true after Ctrl-C or SIGTERM: end soon, keep what was found
  bool has_gpu = false;
};

/// Continues what the journal in options.out holds, if it holds something.
CampaignResult run_campaign(const CampaignOptions& options, const CampaignHooks& hooks, CampaignListener& listener);

}  // namespace attest
