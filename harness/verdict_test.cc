#include "harness/verdict.h"

#include <gtest/gtest.h>

namespace attest {
namespace {

using Outcome = Comparison::Outcome;

Comparison comparison(std::string quantity, Outcome outcome, double headroom, int64_t vacuous = 0) {
  return {.outcome = outcome, .quantity = std::move(quantity), .sentence = "why", .index = {0, 2}, .headroom = headroom,
          .elements = 4, .vacuous = vacuous};
}

TEST(Judge, passes_when_every_comparison_passes) {
  const Verdict v = judge({comparison("out", Outcome::kPass, 0.5), comparison("lse", Outcome::kPass, 0.75)}, "the law");
  EXPECT_EQ(v.status, Status::kPass);
  EXPECT_EQ(worst_of(v)->quantity, "lse");
}

TEST(Judge, names_the_worst_failure_even_beside_a_wider_undecided_one) {
  const Verdict v = judge({comparison("out", Outcome::kUndecided, 9), comparison("dq", Outcome::kFail, 2),
                           comparison("dk", Outcome::kFail, 3), comparison("dv", Outcome::kFail, 3)}, "the law");
  EXPECT_EQ(v.status, Status::kIncorrect);
  EXPECT_EQ(v.sentence, "the law: dk[0, 2]: why");
}

TEST(Judge, is_undecided_when_none_fails_and_one_is_undecided) {
  EXPECT_EQ(judge({comparison("out", Outcome::kPass, 0.5), comparison("lse", Outcome::kUndecided, 0.1)}, "l").status, Status::kUndecided);
}

TEST(Judge, is_vacuous_when_no_element_could_have_failed) {
  EXPECT_EQ(judge({}, "l").status, Status::kVacuous);
  EXPECT_EQ(judge({comparison("out", Outcome::kPass, 0, 4)}, "l").status, Status::kVacuous);
  EXPECT_EQ(judge({comparison("out", Outcome::kPass, 0, 4), comparison("lse", Outcome::kPass, 0)}, "l").status, Status::kPass);
}

TEST(IsFailure, blames_the_kernel_alone) {
  EXPECT_TRUE(is_failure(Status::kIncorrect));
  EXPECT_TRUE(is_failure(Status::kFlaky));
  EXPECT_FALSE(is_failure(Status::kHarnessError));
  EXPECT_FALSE(is_failure(Status::kUndecided));
  EXPECT_FALSE(is_failure(Status::kKnownFailure));
}

}  // namespace
}  // namespace attest
