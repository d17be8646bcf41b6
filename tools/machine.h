// What this machine is, for reports and fixtures; and the workers that commands use.
#pragma once

#include <map>
#include <string>

#include "harness/campaign.h"
#include "harness/worker_process.h"
#include "tools/commands.h"
#include "tools/select.h"

namespace attest {

/// Versions, processor, GPU and driver.
std::map<std::string, std::string> machine_provenance();

/// Why CUDA variants cannot run here; nothing when they can.
const std::optional<std::string>& why_no_gpu();

/// Hooks whose workers write their logs into `log_folder`.
CampaignHooks campaign_hooks(const Program& program, const Selection& selection, const std::string& log_folder);

/// From now on a first Ctrl-C or SIGTERM makes the campaign of `hooks` end with its report, within a second or so even where a kernel
/// hangs; a second one kills.
void finish_when_interrupted(CampaignHooks& hooks);

/// Seconds in "20s", "30m", "8h", "500ms". Throws UsageError.
std::chrono::milliseconds parse_duration(const std::string& text, const std::string& flag);

}  // namespace attest
