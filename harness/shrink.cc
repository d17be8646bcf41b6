#include "harness/shrink.h"

#include <fmt/format.h>

#include <chrono>
#include <set>

#include "harness/edit.h"
#include "harness/generate.h"
#include "harness/tensors.h"

namespace attest {
namespace {

class Shrinker {
 public:
  explicit Shrinker(const ShrinkTask& task)
      : task_(task), deadline_(std::chrono::steady_clock::now() + task.max_time), result_{task.source, task.verdict} {}

  ShrinkResult run() {
    own_data_ = !result_.minimum.made_by;
    if (own_data_)
      simplify(true);
    else
      shrink_case();
    simplify(false);
    confirm();
    return result_;
  }

 private:
  bool interrupted() const { return task_.interrupted && task_.interrupted(); }
  bool exhausted() const {
    return result_.probes >= task_.max_probes || std::chrono::steady_clock::now() > deadline_ || interrupted();
  }

  /// True when `candidate` fails as the first failure did; it is then the new minimum.
  bool accept(const Source& candidate) {
    ++result_.probes;
    Verdict verdict = task_.probe(candidate, false);
    if (verdict.status != task_.verdict.status) return false;
    result_.minimum = candidate;
    result_.verdict = std::move(verdict);
    ++result_.shrinks;
    return true;
  }

  /// A law of bits needs data that show it, which are rare in small cases: other seeds are tried too.
  bool accept_any_seed(Source source) {
    constexpr uint64_t kSeeds = 6;
    const uint64_t seed = source.made_by->seed;
    for (uint64_t n = 0; n < kSeeds && !exhausted(); ++n) {
      source.made_by->seed = n == 0 ? seed : (seed + n * 7919) % 1000000;
      if (accept(source)) return true;
    }
    return false;
  }

  void shrink_case() {
    for (bool smaller = true; smaller && !exhausted();) {
      smaller = false;
      for (const Case& candidate : shrink_candidates(*result_.minimum.made_by, task_.domain)) {
        if (exhausted()) return;
        Source source = result_.minimum;
        source.made_by = candidate;
        if (accept_any_seed(source)) {
          smaller = true;
          break;
        }
      }
    }
  }

  /// One tensor is simplified once: zeros if it can, else ones, else powers of two. Parts of the problem are tried again
  /// after each success, since they are new ones.
  void simplify(bool parts) {
    std::set<std::string> done;
    for (bool again = true; again && !exhausted();) {
      again = false;
      for (const std::string& edit : edit_candidates(task_.inputs_of(result_.minimum), own_data_)) {
        if (exhausted()) return;
        const bool part = edit.starts_with("keep");
        const std::string tensor = edit.substr(edit.find(' ') + 1);
        if (part != parts || (!part && done.contains(tensor))) continue;
        Source source = result_.minimum;
        source.edits.push_back(edit);
        if (!accept(source)) continue;
        done.insert(tensor);
        again = true;
        if (part) break;
      }
      if (!parts) return;
    }
  }

  void confirm() {
    result_.interrupted = interrupted();
    Verdict again = task_.probe(result_.minimum, true);
    result_.interrupted = result_.interrupted || interrupted();
    if (result_.interrupted && again.status == Status::kHarnessError) return;  // it was given no time
    if (again.status != result_.verdict.status)
      again = {Status::kFlaky,
               fmt::format("the minimum was {} ({}), and {} when run again ({})", name_of(result_.verdict.status),
                           result_.verdict.sentence, name_of(again.status), again.sentence),
               again.comparisons};
    result_.verdict = std::move(again);
  }

  const ShrinkTask& task_;
  const std::chrono::steady_clock::time_point deadline_;
  bool own_data_ = false;
  ShrinkResult result_;
};

}  // namespace

ShrinkResult shrink(const ShrinkTask& task) { return Shrinker(task).run(); }

}  // namespace attest
