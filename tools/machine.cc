#include "tools/machine.h"

#include <fmt/format.h>

#include <array>
#include <csignal>
#include <fstream>
#include <memory>

#include "build_info.h"
#include "fixtures/fixture.h"
#include "harness/error.h"
#include "harness/tensors.h"

namespace attest {
namespace {

volatile std::sig_atomic_t interrupted = 0;

constexpr int kInterrupts[] = {SIGINT, SIGTERM};  // Ctrl-C; what timeout and schedulers send

/// The second one kills.
void on_interrupt(int) {
  interrupted = 1;
  for (const int signal : kInterrupts) std::signal(signal, SIG_DFL);
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

std::string first_line_of(const char* command) {
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command, "re"), pclose);
  std::array<char, 256> line{};
  if (!pipe || fgets(line.data(), line.size(), pipe.get()) == nullptr) return "";
  std::string text(line.data());
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

const std::optional<std::string>& why_no_gpu() {
  static const std::optional<std::string> why = load_cuda();
  return why;
}

std::map<std::string, std::string> machine_provenance() {
  std::map<std::string, std::string> p{
      {"attest", kVersion}, {"commit", kCommit}, {"compiler", kCompiler}, {"libtorch", kTorch}, {"processor", processor()}};
  if (!why_no_gpu()) p["gpu"] = first_line_of("nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null");
  return p;
}

CampaignHooks campaign_hooks(const Program& program, const Selection& selection, const std::string& log_folder) {
  CampaignHooks hooks;
  hooks.make_worker = [program, selection, log_folder](Device device, int index) {
    std::vector<std::string> args{"worker"};
    if (device == Device::kCuda) args.push_back("--cuda");
    if (selection.device) args.insert(args.end(), {"--device", std::string(name_of(*selection.device))});
    if (!selection.poison_outputs) args.push_back("--unfilled-outputs");
    for (const std::string& library : selection.load) args.insert(args.end(), {"--load", library});
    for (const std::string& variant : selection.variants)
      if (variant.starts_with("torch:")) args.insert(args.end(), {"--variant", variant});
    return WorkerProcess({program.path, args, fmt::format("{}/worker-{}.log", log_folder, index), [] { return interrupted != 0; }});
  };
  hooks.load_record = read_fixture;
  hooks.amend_record = amend_verdict;
  hooks.has_gpu = !why_no_gpu();
  return hooks;
}

void finish_when_interrupted(CampaignHooks& hooks) {
  for (const int signal : kInterrupts) std::signal(signal, on_interrupt);
  hooks.interrupted = [] { return interrupted != 0; };
}

std::chrono::milliseconds parse_duration(const std::string& text, const std::string& flag) {
  size_t end = 0;
  double number = -1;
  try {
    number = std::stod(text, &end);
  } catch (const std::exception&) {
  }
  static const std::map<std::string, double> kUnits{{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
  const auto unit = kUnits.find(text.substr(end));
  if (unit == kUnits.end() || !(number > 0) || number * unit->second > 1e12)
    throw UsageError(fmt::format("{} takes a duration such as 500ms, 20s, 30m or 8h, not '{}'", flag, text));
  return std::chrono::milliseconds(static_cast<int64_t>(number * unit->second));
}

}  // namespace attest
