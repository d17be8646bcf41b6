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
  void counterexample_found(const CellResult& cell) override;
  void campaign_finished(const CampaignResult& result) override;

 private:
  void draw(int64_t done, int64_t failing);

  bool terminal_;
  int64_t total_ = 0;
  std::chrono::steady_clock::time_point start_, last_;
};

}  // namespace attest
