#include "harness/verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace attest {
namespace {

int rank(Comparison::Outcome outcome) {
  switch (outcome) {
    case Comparison::Outcome::kPass: return 0;
    case Comparison::Outcome::kUndecided: return 1;
    case Comparison::Outcome::kFail: break;
  }
  return 2;
}

/// E.g. "batch element 1 run alone: dq[0, 1, 2, 3]: actual 1.5, …".
std::string sentence_for(const std::string& law, const Comparison& c) {
  const std::string at = c.index.empty() ? "" : fmt::format("[{}]", fmt::join(c.index, ", "));
  return fmt::format("{}: {}{}: {}", law, c.quantity, at, c.sentence);
}

/// No element of any comparison could have failed for being inaccurate.
bool all_vacuous(const std::vector<Comparison>& comparisons) {
  return std::all_of(comparisons.begin(), comparisons.end(), [](const Comparison& c) { return c.vacuous == c.elements; });
}

}  // namespace

bool is_failure(Status s) {
  switch (s) {
    case Status::kIncorrect:
    case Status::kLaunchError:
    case Status::kCrashed:
    case Status::kTimedOut:
    case Status::kOutOfMemory:
    case Status::kFlaky: return true;
    default: return false;
  }
}

Verdict pass(std::vector<Comparison> comparisons) {
  return {.status = Status::kPass, .sentence = "the law holds", .comparisons = std::move(comparisons)};
}

Verdict vacuous(std::string why) { return {.status = Status::kVacuous, .sentence = std::move(why)}; }

Verdict incorrect(std::string sentence, std::vector<Comparison> comparisons) {
  return {.status = Status::kIncorrect, .sentence = std::move(sentence), .comparisons = std::move(comparisons)};
}

Verdict judge(std::vector<Comparison> comparisons, const std::string& law) {
  if (comparisons.empty()) return vacuous(law + ": there was no quantity to compare");
  Verdict verdict{.comparisons = std::move(comparisons)};
  const Comparison& worst = *worst_of(verdict);
  switch (worst.outcome) {
    case Comparison::Outcome::kFail: verdict.status = Status::kIncorrect; break;
    case Comparison::Outcome::kUndecided: verdict.status = Status::kUndecided; break;
    case Comparison::Outcome::kPass:
      verdict.status = all_vacuous(verdict.comparisons) ? Status::kVacuous : Status::kPass;
      break;
  }
  verdict.sentence = sentence_for(law, worst);
  return verdict;
}

const Comparison* worst_of(const Verdict& v) {
  const auto less = [](const Comparison& a, const Comparison& b) {
    return std::pair(rank(a.outcome), a.headroom) < std::pair(rank(b.outcome), b.headroom);
  };
  const auto worst = std::max_element(v.comparisons.begin(), v.comparisons.end(), less);  // the first of equals
  return worst == v.comparisons.end() ? nullptr : &*worst;
}

}  // namespace attest
