// Every seeded defect is found by the property that should find it, shrunk to the smallest case that can show it, stored, and
// replayed in a fresh process with the same verdict; and no defect-free variant fails. Runs the real program.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fixtures/fixture.h"
#include "harness/error.h"
#include "harness/variant.h"
#include "reports/report.h"
#include "tools/test_program.h"

namespace attest {
namespace {

struct Defect {
  std::string variant;
  Status status;
  /// Upper limits of the smallest case that can show it.
  int64_t batch, heads_q, heads_kv, queries, keys;
};

void PrintTo(const Defect& d, std::ostream* os) { *os << d.variant; }

const Defect kDefects[] = {
    {"faulty.softmax.top_left_causal", Status::kIncorrect, 1, 1, 1, 2, 2},
    {"faulty.softmax.nan_on_masked_rows", Status::kIncorrect, 1, 1, 1, 2, 1},
    {"faulty.softmax.nan_gradient_on_masked_rows", Status::kIncorrect, 1, 1, 1, 2, 1},
    {"faulty.softmax.split_by_batch", Status::kIncorrect, 2, 1, 1, 2, 6},
    {"faulty.softmax.position_seeded", Status::kIncorrect, 2, 1, 1, 1, 4},
    {"faulty.softmax.gqa_repeat", Status::kIncorrect, 1, 4, 2, 1, 1},
    {"faulty.softmax.tail_unmasked", Status::kIncorrect, 1, 1, 1, 1, 17},
    {"faulty.softmax.padding_sentinel", Status::kIncorrect, 1, 1, 1, 1, 2},
    {"faulty.softmax.peeks_ahead", Status::kIncorrect, 1, 1, 1, 2, 3},
    {"faulty.softmax.chunk_splits", Status::kIncorrect, 1, 1, 1, 2, 4},
    {"faulty.softmax.counts_padding", Status::kIncorrect, 1, 1, 1, 1, 2},
    {"faulty.softmax.nondeterministic_order", Status::kIncorrect, 1, 1, 1, 1, 4},
    {"faulty.softmax.capacity_strides", Status::kIncorrect, 1, 2, 2, 1, 1},
    {"faulty.softmax.padded_key_gradient", Status::kIncorrect, 1, 1, 1, 1, 2},
    {"faulty.softmax.scales_query_in_place", Status::kIncorrect, 1, 1, 1, 1, 1},
    {"faulty.softmax.segfault", Status::kCrashed, 1, 1, 1, 1, 1},
    {"faulty.softmax.endless_loop", Status::kTimedOut, 1, 1, 1, 1, 1},
    {"faulty.softmax.allocates_1tb", Status::kOutOfMemory, 1, 1, 1, 1, 1},
    {"faulty.softmax.no_twin", Status::kIncorrect, 1, 1, 1, 1, 4},
    {"faulty.softmax.unlike_its_twin", Status::kIncorrect, 1, 1, 1, 1, 4},
    {"faulty.stickbreaking.one_minus_beta", Status::kIncorrect, 1, 1, 1, 2, 4},
    {"faulty.stickbreaking.drops_drem", Status::kIncorrect, 1, 1, 1, 1, 2},
    {"faulty.softmax.boundary_off_by_one", Status::kIncorrect, 1, 1, 1, 2, 2},
    {"faulty.softmax.neighbours_times_zero", Status::kIncorrect, 1, 1, 1, 2, 2},
    {"faulty.softmax.position_from_capacity", Status::kIncorrect, 1, 1, 1, 2, 2},
    {"faulty.stickbreaking.one_key_past_the_length", Status::kIncorrect, 1, 1, 1, 2, 2},
    {"faulty.stickbreaking.oldest_first", Status::kIncorrect, 1, 1, 1, 2, 3},
};

class SeededDefect : public ::testing::TestWithParam<Defect> {};

TEST_P(SeededDefect, is_found_shrunk_stored_and_replayed) {
  const Defect& defect = GetParam();
  const KernelVariant* variant = Registry<KernelVariant>::instance().find(defect.variant);
  ASSERT_NE(variant, nullptr);
  const std::string out = fresh_folder();
  const std::string property = variant->faulty_caught_by;
  const ProgramRun run = attest_program({"run", "--variant", defect.variant, "--property", property, "--cases", "150", "--seed",
                                         "1", "--jobs", "1", "--timeout", "2s", "--no-regression", "--out", out});
  ASSERT_EQ(run.exit_code, static_cast<int>(ExitCode::kKernelWrong)) << run.output;
  const CampaignResult result = read_report(out);
  ASSERT_EQ(result.cells.size(), 1U);
  const CellResult& cell = result.cells.front();
  EXPECT_EQ(cell.status, defect.status) << cell.sentence;

  const AttentionProblem p = read_fixture(cell.fixture).inputs.problem;
  EXPECT_LE(p.batch, defect.batch) << p;
  EXPECT_LE(p.num_heads_q, defect.heads_q) << p;
  EXPECT_LE(p.num_heads_kv, defect.heads_kv) << p;
  EXPECT_LE(p.seqlen_q, defect.queries) << p;
  EXPECT_LE(p.seqlen_kv, defect.keys) << p;

  const ProgramRun replay = attest_program({"replay", cell.fixture, "--timeout", "2s"});
  EXPECT_EQ(replay.exit_code, static_cast<int>(ExitCode::kKernelWrong)) << replay.output;
  EXPECT_NE(replay.output.find("(as recorded)"), std::string::npos) << replay.output;
}

std::string defect_name(const ::testing::TestParamInfo<Defect>& info) {
  std::string name = info.param.variant.substr(7);
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Each, SeededDefect, ::testing::ValuesIn(kDefects), defect_name);

/// In the fused kernels' own code; a GPU is needed. The case where the generated ones show the defect too seldom.
struct TwinDefect {
  std::string variant, only_case;
};
void PrintTo(const TwinDefect& d, std::ostream* os) { *os << d.variant; }

const TwinDefect kTwins[] = {
    {"faulty.softmax.fused_dominant_ignored"},
    {"faulty.softmax.fused_empty_tile_unguarded"},
    {"faulty.softmax.fused_neighbours_reference"},
    {"faulty.softmax.fused_rescale_by_one_row"},
    {"faulty.softmax.fused_rescale_of_tile_before"},
    {"faulty.softmax.fused_segments_by_batch"},
    {"faulty.softmax.fused_sum_not_normalised",
     "op=softmax B=1 Hq=2 Hkv=2 Sq=2 Skv=5 D=1 Dv=1 bf16 logits=negative(125000) values=one-hot seed=83889"},
    {"faulty.softmax.fused_tail_weights"},
    {"faulty.softmax.fused_tiles_by_block"},
    {"faulty.softmax.fused_weights_in_8_bits"},
    {"faulty.stickbreaking.fused_one_minus_beta"},
    {"faulty.stickbreaking.fused_remainder_dropped"},
    {"faulty.stickbreaking.fused_scan_from_far_end"},
    {"faulty.stickbreaking.fused_snapshot_of_other_tile"},
    {"faulty.stickbreaking.fused_snapshots_never_written"},
    {"faulty.stickbreaking.fused_stop_on_threshold"},
    {"faulty.stickbreaking.fused_stop_one_tile_early"},
    {"faulty.stickbreaking.fused_suffix_with_key_itself"},
    {"faulty.stickbreaking.fused_sum_in_16_bits"},
    {"faulty.stickbreaking.fused_total_minus_near"},
};

class SeededTwin : public ::testing::TestWithParam<TwinDefect> {};

TEST_P(SeededTwin, is_found_on_a_gpu) {
  if (const auto why = load_cuda()) GTEST_SKIP() << *why;
  const KernelVariant* variant = Registry<KernelVariant>::instance().find(GetParam().variant);
  if (variant == nullptr) GTEST_SKIP() << "built without the kernels for Hopper";
  std::vector<std::string> words{"run", "--variant", variant->name, "--property", variant->faulty_caught_by, "--seed", "7",
                                 "--no-shrink", "--no-regression", "--max-work", "1048576", "--out", fresh_folder()};
  const bool generated = GetParam().only_case.empty();
  words.insert(words.end(), {generated ? "--cases" : "--case", generated ? "150" : GetParam().only_case});
  const ProgramRun run = attest_program(words);
  EXPECT_EQ(run.exit_code, static_cast<int>(ExitCode::kKernelWrong)) << run.output;
}
INSTANTIATE_TEST_SUITE_P(Each, SeededTwin, ::testing::ValuesIn(kTwins), [](const ::testing::TestParamInfo<TwinDefect>& info) {
  const std::string& name = info.param.variant;
  return name.starts_with("faulty.softmax.") ? name.substr(15) : "stick_" + name.substr(21);
});

TEST(SeededTwins, are_all_listed_here) {
  for (const KernelVariant* v : Registry<KernelVariant>::instance().all()) {
    if (!v->name.starts_with("faulty.") || v->name.find(".fused_") == std::string::npos) continue;
    const bool listed =
        std::any_of(std::begin(kTwins), std::end(kTwins), [&](const TwinDefect& d) { return d.variant == v->name; });
    EXPECT_TRUE(listed) << v->name;
  }
}

TEST(SeededDefects, are_all_listed_here) {
  for (const KernelVariant* v : Registry<KernelVariant>::instance().all()) {
    if (!v->name.starts_with("faulty.") || v->device == Device::kCuda) continue;
    const bool listed =
        std::any_of(std::begin(kDefects), std::end(kDefects), [&](const Defect& d) { return d.variant == v->name; });
    EXPECT_TRUE(listed) << v->name;
  }
}

}  // namespace
}  // namespace attest
