// attest audit and attest bench oracles as a user meets them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/error.h"
#include "oracles/group_problem.h"
#include "tools/test_program.h"

namespace attest {
namespace {

using testing::HasSubstr;

bool cpu_has_lanes() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

TEST(AuditProgram, prints_and_keeps_a_row_for_each_quantity_of_each_tier_in_each_regime) {
  if (balls_unavailable() || !cpu_has_lanes()) GTEST_SKIP() << "no FLINT, or no AVX2";
  const std::string file = fresh_folder() + "/audit.json";
  const ProgramRun run =
      attest_program({"audit", "--elements", "1000", "--longest-row", "64", "--head-dim", "8", "--jobs", "1", "--out", file});
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("every true value lies within its radius"));
  const nlohmann::json json = nlohmann::json::parse(std::ifstream(file));
  EXPECT_EQ(json.at("cells").size(), 2U * 2U * 10U * 5U);
  EXPECT_TRUE(json.at("findings").empty());
  EXPECT_GE(json.at("elements").get<int64_t>(), 1000);
}

TEST(AuditProgram, enclosures_of_fewer_than_1000_bits_are_refused) {
  EXPECT_EQ(attest_program({"audit", "--bits", "128"}).exit_code, code(ExitCode::kBadUsage));
}

TEST(BenchOraclesProgram, times_each_tier_beside_plain_double) {
  if (!cpu_has_lanes()) GTEST_SKIP() << "this CPU has no AVX2 or no FMA";
  const std::string file = fresh_folder() + "/oracles.json";
  const ProgramRun run = attest_program({"bench", "oracles", "--fast-only", "--repeats", "3", "--out", file});
  EXPECT_EQ(run.exit_code, 0) << run.output;
  const nlohmann::json json = nlohmann::json::parse(std::ifstream(file));
  EXPECT_EQ(json.at("rows").size(), 2U * 3U * 2U * 5U);  // operators, sizes, lanes, (tiers, threads)
  for (const nlohmann::json& row : json.at("rows"))
    if (row.at("lanes") == "avx2") {
      EXPECT_GT(row.at("seconds").get<double>(), 0) << row;
      EXPECT_GT(row.at("over_plain_double").get<double>(), 0) << row;
    }
}

}  // namespace
}  // namespace attest
