// In place of tier 2 where FLINT was absent at the build: the rigorous answer is refused, not imitated.
#include "harness/error.h"
#include "oracles/audit/judge.h"
#include "oracles/group_problem.h"

namespace attest {

std::optional<std::string> balls_unavailable() {
  return "Attest was built without FLINT, which its rigorous tier needs: install libflint-dev (on Debian 12 libflint-arb-dev "
         "too) and build again";
}

void evaluate_balls(const GroupProblem&, GroupReference&, int) { throw UsageError(*balls_unavailable()); }

Judgement judge(const GroupProblem&, const std::vector<AuditTier>&, int) { throw UsageError(*balls_unavailable()); }
void end_judging_thread() {}

}  // namespace attest
