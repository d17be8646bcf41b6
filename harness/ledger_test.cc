#include "harness/ledger.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "harness/error.h"

namespace attest {
namespace {

/// Two cells of one real variant.
CampaignOptions options() {
  CampaignOptions o;
  o.variants = {"softmax.cpu.fixed_order"};
  o.properties = {"repeat_run.forward", "returns"};
  o.cases = 10;
  return o;
}

class LedgerTest : public ::testing::Test {
 protected:
  LedgerTest()
      : plan_(options(), false),
        path_(testing::TempDir() + "/ledger_" + testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove(path_);
  }
  CaseResult judged(int64_t number, Status status) const {
    return {number, plan_.source(number), {{plan_.cells()[0].cell, {status, "number " + std::to_string(number), {}}}}, {}};
  }
  Plan plan_;
  std::string path_;
};

TEST_F(LedgerTest, returns_is_judged_first) { EXPECT_EQ(plan_.cells()[0].cell.property, "returns"); }

TEST_F(LedgerTest, cases_are_entered_in_order_whatever_order_they_finish_in) {
  Ledger ledger(plan_, path_);
  EXPECT_EQ(ledger.enter(judged(1, Status::kIncorrect)), 0);
  EXPECT_EQ(ledger.failing(), 0) << "case 0 may still fail first";
  EXPECT_EQ(ledger.enter(judged(0, Status::kIncorrect)), 2);
  EXPECT_EQ(ledger.cell(0).sentence, "number 0");
}

TEST_F(LedgerTest, the_first_failure_closes_a_cell) {
  Ledger ledger(plan_, path_);
  ledger.enter(judged(0, Status::kPass));
  EXPECT_TRUE(ledger.is_open(0));
  ledger.enter(judged(1, Status::kIncorrect));
  ledger.enter(judged(2, Status::kPass));
  EXPECT_FALSE(ledger.is_open(0));
  EXPECT_EQ(ledger.cell(0).passed, 1);
  EXPECT_EQ(ledger.cell(0).cases_before, 2);
  EXPECT_EQ(ledger.to_shrink(), std::vector<size_t>{0});
}

TEST_F(LedgerTest, a_variant_whose_process_died_three_times_gets_no_more_cases) {
  Ledger ledger(plan_, path_);
  CaseResult died = judged(0, Status::kPass);
  for (int64_t n = 0; n < 3; ++n) {
    died.number = n;
    died.verdicts = {{plan_.cells()[0].cell, {Status::kCrashed, "signal 11", {}}}};
    ledger.enter(died);
  }
  EXPECT_FALSE(ledger.is_open(1));
}

TEST_F(LedgerTest, a_killed_run_continues_where_it_was) {
  {
    Ledger ledger(plan_, path_);
    ledger.begin(0, plan_.source(0));
    ledger.enter(judged(0, Status::kPass));
    ledger.enter(judged(2, Status::kVacuous));
    ledger.begin(1, plan_.source(1));  // killed here
  }
  std::ofstream(path_, std::ios::app) << "{\"judged\": 3, \"sour";
  { Ledger(plan_, path_).enter(judged(1, Status::kPass)); }  // killed once more: what was torn is not continued
  std::ofstream(path_, std::ios::app) << "{\"begin\":3}";  // whole, but for the end of its line
  Ledger again(plan_, path_);
  EXPECT_TRUE(again.is_done(0));
  EXPECT_TRUE(again.is_done(1));
  EXPECT_TRUE(again.is_done(2));
  EXPECT_FALSE(again.is_done(3));
  EXPECT_EQ(again.cell(0).passed, 2);
}

TEST_F(LedgerTest, a_journal_damaged_in_the_middle_is_refused) {
  for (const char* garbage : {"garbage", "[]", "{\"judged\": 1}", "{\"minimum\": 3}"}) {
    std::filesystem::remove(path_);
    { Ledger(plan_, path_).enter(judged(0, Status::kPass)); }
    std::ofstream(path_, std::ios::app) << garbage << "\n{\"begin\":1}\n";
    EXPECT_THROW(Ledger(plan_, path_), UsageError) << garbage;
  }
}

TEST_F(LedgerTest, a_cell_is_what_its_gravest_verdict_says) {
  const std::pair<std::vector<Status>, Status> laws[] = {
      {{}, Status::kVacuous},
      {{Status::kVacuous, Status::kPass}, Status::kPass},
      {{Status::kPass, Status::kNotPromised, Status::kPass}, Status::kNotPromised},
      {{Status::kNotPromised, Status::kUndecided}, Status::kUndecided},
      {{Status::kUnsupported, Status::kVacuous}, Status::kUnsupported},
      {{Status::kUndecided, Status::kTimedOut}, Status::kTimedOut},
  };
  for (const auto& [verdicts, expected] : laws) {
    std::filesystem::remove(path_);
    Ledger ledger(plan_, path_);
    for (size_t n = 0; n < verdicts.size(); ++n) ledger.enter(judged(static_cast<int64_t>(n), verdicts[n]));
    const auto cells = ledger.conclude();
    EXPECT_EQ(std::find_if(cells.begin(), cells.end(), [](const CellResult& c) { return c.cell.property == "returns"; })->status,
              expected);
  }
}

TEST_F(LedgerTest, a_cell_whose_every_case_was_lost_before_its_turn_is_not_reached) {
  Ledger ledger(plan_, path_);
  const auto other = [&] { return ledger.conclude()[plan_.cells()[1].cell < plan_.cells()[0].cell ? 0 : 1]; };
  EXPECT_EQ(other().status, Status::kVacuous) << "no case yet";
  int64_t number = 0;
  while (plan_.cells_for(plan_.source(number)).size() < 2) ledger.enter(judged(number, Status::kPass)), ++number;
  ledger.enter(judged(number, Status::kIncorrect));
  EXPECT_EQ(other().status, Status::kNotReached);
  CaseResult both = judged(number + 1, Status::kIncorrect);
  both.verdicts.push_back({plan_.cells()[1].cell, {Status::kVacuous, "", {}}});
  ledger.enter(both);
  EXPECT_EQ(other().status, Status::kVacuous) << "it was judged once";
}

}  // namespace
}  // namespace attest
