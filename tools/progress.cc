#include "tools/progress.h"

#include <fmt/format.h>
#include <unistd.h>

namespace attest {
namespace {
using std::chrono::steady_clock;
constexpr int kBarWidth = 30;
constexpr char kClearLine[] = "\r\033[K";
}  // namespace

Progress::Progress() : terminal_(isatty(STDERR_FILENO) != 0), start_(steady_clock::now()), last_(start_) {}

void Progress::campaign_started(int64_t cases) { total_ = cases; }

void Progress::draw(int64_t done, int64_t failing) {
  const double seconds = std::chrono::duration<double>(steady_clock::now() - start_).count();
  const std::string counts = total_ > 0 ? fmt::format("{}/{}", done, total_) : fmt::format("{}", done);
  const std::string text = fmt::format("{} cases, {} cells failing, {:.0f} s", counts, failing, seconds);
  if (!terminal_) {
    fmt::print(stderr, "{}\n", text);
    return;
  }
  const int full = total_ > 0 ? static_cast<int>(kBarWidth * done / total_) : 0;
  fmt::print(stderr, "{}[{:#<{}}{:<{}}] {}", kClearLine, "", full, "", kBarWidth - full, text);
  std::fflush(stderr);
}

bool Progress::is_due() {
  const auto now = steady_clock::now();
  const auto pause = terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(10000);
  if (now - last_ < pause) return false;
  last_ = now;
  return true;
}

void Progress::case_finished(int64_t done, int64_t failing) {
  if (is_due() || done == total_) draw(done, failing);
}

void Progress::shrinking(const Cell& cell, int64_t probes) {
  if (!is_due()) return;
  fmt::print(stderr, "{}shrinking {} × {}: {} probes{}", terminal_ ? kClearLine : "", cell.variant, cell.property, probes,
             terminal_ ? "" : "\n");
  std::fflush(stderr);
}

void Progress::counterexample_found(const CellResult& cell) {
  fmt::print(stderr, "{}{}: {} × {}: {}\n", terminal_ ? kClearLine : "", name_of(cell.worst.status), cell.cell.variant,
             cell.cell.property, to_string(cell.source));
}

void Progress::campaign_finished(const CampaignResult&) {
  if (terminal_) fmt::print(stderr, "{}", kClearLine);
}

}  // namespace attest
