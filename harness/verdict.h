// The outcome of one property on one variant and one case.
#pragma once

#include <string>
#include <vector>

#include "harness/compare.h"

namespace attest {

enum class Status : uint8_t {
  kPass,
  kIncorrect,
  kNotPromised,     // the law does not hold, and the variant never said it would
  kUnsupported,     // outside a domain
  kInvalidCase,
  kLaunchError,
  kCrashed,
  kTimedOut,
  kOutOfMemory,
  kFlaky,           // the minimum, run again, gave another verdict
  kVacuous,         // the case had nothing for this law to test
  kUndecided,       // the reference's radius is too wide to tell
  kNeedsGpu,        // unsupported here
  kKnownFailure,    // listed in the variant's record
  kUnexpectedPass,  // listed there, and holds
  kHarnessError,    // the oracle or Attest itself failed
  kNotReached,      // of a whole cell: on each of its cases the kernel did not return
};
template <>
struct EnumNames<Status> {
  static constexpr std::string_view kNames[] = {
      "pass",  "incorrect", "not promised", "unsupported", "invalid case",  "launch error",    "crashed",      "timed out",
      "out of memory", "flaky", "vacuous", "undecided", "needs a GPU", "known failure", "unexpected pass", "harness error",
      "not reached"};
};

struct Verdict {
  Status status = Status::kHarnessError;
  std::string sentence;                 // one, readable alone
  std::vector<Comparison> comparisons;  // per quantity; empty for laws that compare nothing numerically
};

/// The kernel is to blame: incorrect, launch error, crashed, timed out, out of memory, flaky.
bool is_failure(Status s);

Verdict pass(std::vector<Comparison> comparisons = {});
Verdict vacuous(std::string why);
Verdict incorrect(std::string sentence, std::vector<Comparison> comparisons = {});
/// Pass when every comparison passes; incorrect naming the worst otherwise; undecided when none fails and one is undecided;
/// vacuous when there is no comparison, or no element whose inaccuracy could have failed it.
/// `law` says what was compared, e.g. "batch element 1 run alone".
Verdict judge(std::vector<Comparison> comparisons, const std::string& law);
const Comparison* worst_of(const Verdict& v);

}  // namespace attest
