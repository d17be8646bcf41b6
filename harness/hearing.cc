#include "harness/hearing.h"

#include <algorithm>

#include "harness/printable.h"

namespace attest {

bool Hearing::is_of_job(const Cell& cell) const {
  return std::find(job_.cells.begin(), job_.cells.end(), cell) != job_.cells.end();
}

bool Hearing::hear(const std::string& line) try {
  Event event = decode_event(line);
  const bool names_cell = event == Event::Kind::kStart || event == Event::Kind::kVerdict;
  if (names_cell && !is_of_job(event.cell)) return false;
  if (event == Event::Kind::kStart) running_ = event.cell;
  in_oracle_ = event == Event::Kind::kOracle;
  if (event == Event::Kind::kVerdict) {
    result_.verdicts.push_back({event.cell, std::move(event.verdict)});
    running_.reset();
  }
  result_.lost = event == Event::Kind::kPoisoned;
  done_ = result_.lost || event == Event::Kind::kDone;
  if (done_) result_.time = event.time;
  return true;
} catch (const std::exception&) {  // of the JSON reader, or an event that is not known
  return false;
}

void Hearing::lose(Status status, std::string sentence, bool doubtful) {
  result_.lost = true;
  if (!running_ && result_.verdicts.empty()) throw DiedIdle("a worker failed before it judged anything: " + sentence);
  if (!running_) return;  // between two cells, or after the last
  if (in_oracle_) {
    status = Status::kHarnessError;
    sentence = "in the oracle: " + sentence;
  }
  result_.verdicts.push_back({*running_, {status, printable(sentence), {}}});
  result_.doubtful = doubtful;
}

}  // namespace attest
