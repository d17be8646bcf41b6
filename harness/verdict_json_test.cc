#include "harness/verdict_json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace attest {
namespace {

TEST(VerdictJson, keeps_numbers_that_json_cannot_hold) {
  Verdict v{Status::kIncorrect, "out is NaN", {Comparison{}}};
  Comparison& c = v.comparisons[0];
  c.quantity = "out";
  c.index = {0, 1, 2};
  c.actual = std::numeric_limits<double>::quiet_NaN();
  c.expected = -std::numeric_limits<double>::infinity();
  c.headroom = std::numeric_limits<double>::infinity();
  c.radius = 0.1;
  c.actual_bits = 0xffc0;
  const Verdict again = nlohmann::json::parse(nlohmann::json(v).dump()).get<Verdict>();
  ASSERT_EQ(again.comparisons.size(), 1U);
  EXPECT_TRUE(std::isnan(again.comparisons[0].actual));
  EXPECT_EQ(again.comparisons[0].expected, c.expected);
  EXPECT_EQ(again.comparisons[0].headroom, c.headroom);
  EXPECT_EQ(again.comparisons[0].radius, 0.1) << "to the last bit";
  EXPECT_EQ(again.comparisons[0].actual_bits, 0xffc0U);
  EXPECT_EQ(again.status, v.status);
}

TEST(VerdictJson, every_status_has_a_name_that_is_read_again) {
  for (Status s : EnumSet<Status>::all().members()) EXPECT_EQ(nlohmann::json(Verdict{s, "", {}}).get<Verdict>().status, s);
}

}  // namespace
}  // namespace attest
