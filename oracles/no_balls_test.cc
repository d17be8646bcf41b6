#include <gtest/gtest.h>

#include "harness/error.h"
#include "oracles/group_problem.h"

namespace attest {
namespace {

TEST(Balls, are_refused_with_a_reason_where_flint_was_absent) {
  if (!balls_unavailable()) GTEST_SKIP() << "FLINT is here";
  GroupReference reference;
  EXPECT_FALSE(balls_unavailable()->empty());
  EXPECT_THROW(evaluate_balls({}, reference, 128), UsageError);
}

}  // namespace
}  // namespace attest
