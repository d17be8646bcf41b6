// What a person sees while a campaign runs: a bar on a terminal, plain lines elsewhere.
#pragma once

#include <chrono>

#include "harness/campaign.h"

namespace attest {

class Progress : public CampaignListener {
 public:
  Progress();
  void campaign_started(int64_t cases) override;
  void case_finished(int64_t done, int64_t failing) override;
  void shrinking(const Cell& cell, int64_t probes) override;
  void counterexample_found(const CellResult& cell) override;
  void campaign_finished(const CampaignResult& result) override;

 private:
  /// Whether enough time has gone by since something was drawn; then it counts as drawn now.
  bool is_due();
  void draw(int64_t done, int64_t failing);

  bool terminal_;
  int64_t total_ = 0;
  std::chrono::steady_clock::time_point start_, last_;
};

}  // namespace attest
