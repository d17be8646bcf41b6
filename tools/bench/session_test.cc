#include "tools/bench/session.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "harness/error.h"
#include "harness/tensors.h"

namespace attest::bench {
namespace {

using testing::HasSubstr;

KernelVariant variant(const std::string& name, std::function<Outputs(const Inputs&)> run) {
  KernelVariant v{.name = name};
  v.run = std::move(run);
  return v;
}

/// Rows by variant of one job, forward unless said otherwise.
std::map<std::string, Row> rows_of(const std::vector<KernelVariant>& variants, Pass pass = Pass::kForward) {
  const int threads = at::get_num_threads();
  at::set_num_threads(1);  // other tests of this process may have started threads, which a child does not have
  const AttentionProblem p{.num_heads_q = 2, .seqlen_q = 1, .seqlen_kv = 8, .head_dim = 4, .head_dim_v = 4, .causal = true};
  SessionPlan plan{{{{shape_name(p), p, Device::kCpu}, pass, Device::kCpu, 30}}, Device::kCpu, {}, {}};
  plan.variants = [&](Op) {
    std::vector<const KernelVariant*> all;
    for (const KernelVariant& v : variants) all.push_back(&v);
    return all;
  };
  plan.machine = [] { return std::map<std::string, std::string>{{"processor", "this one"}}; };
  std::map<std::string, Row> rows;
  int machines = 0;
  run_session(plan, {[&](const auto& machine) { machines += machine.at("processor") == "this one" ? 1 : 0; },
                     [&](const std::vector<Row>& done) {
                       for (const Row& row : done) EXPECT_TRUE(rows.emplace(row.variant, row).second);
                     }});
  EXPECT_EQ(machines, 1);
  at::set_num_threads(threads);
  return rows;
}

Outputs sums(const Inputs& in) { return {.out = in.q.sum() + in.v.sum()}; }

TEST(BenchSession, what_works_is_measured_as_often_as_asked) {
  const auto rows = rows_of({variant("a", sums), variant("b", sums)});
  ASSERT_EQ(rows.size(), 2U);
  for (const auto& [name, row] : rows) {
    EXPECT_EQ(row.outcome, Outcome::kMeasured);
    EXPECT_EQ(row.figures.repeats, 30);
    EXPECT_GT(row.figures.median_ms, 0);
    EXPECT_LE(row.figures.p10_ms, row.figures.median_ms);
    EXPECT_LE(row.figures.median_ms, row.figures.p90_ms);
  }
}

TEST(BenchSession, failures_are_rows_and_the_rest_go_on) {
  KernelVariant refusing = variant("refuses", sums), forward_only = variant("a_forward_only", sums);
  refusing.refuses = [](const Inputs&) { return std::optional<std::string>("not these"); };
  const auto rows =
      rows_of({forward_only, refusing,
               variant("memory", [](const Inputs&) -> Outputs { throw OutOfMemoryError("1 TB is too much\nmore"); }),
               variant("terabytes", [](const Inputs&) -> Outputs { return {.out = at::empty({int64_t{1} << 50}, at::kByte)}; }),
               variant("launch", [](const Inputs&) -> Outputs { throw LaunchError("no such kernel"); })});
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_EQ(rows.at("refuses").outcome, Outcome::kUnsupported);
  EXPECT_EQ(rows.at("refuses").sentence, "not these");
  EXPECT_EQ(rows.at("memory").outcome, Outcome::kOutOfMemory);
  EXPECT_EQ(rows.at("memory").sentence, "1 TB is too much");
  EXPECT_EQ(rows.at("terabytes").outcome, Outcome::kOutOfMemory) << rows.at("terabytes").sentence;
  EXPECT_EQ(rows.at("launch").outcome, Outcome::kLaunchError);
  EXPECT_EQ(rows.at("a_forward_only").outcome, Outcome::kMeasured);
}

TEST(BenchSession, a_variant_without_backward_is_unsupported_for_both) {
  KernelVariant v = variant("v", [](const Inputs& in) -> Outputs {
    if (!in.backward()) throw LaunchError("no dout came");
    return sums(in);
  });
  EXPECT_EQ(rows_of({v}, Pass::kBoth).at("v").outcome, Outcome::kMeasured);
  v.produces = {Quantity::kOut, Quantity::kLse};
  EXPECT_EQ(rows_of({v}, Pass::kBoth).at("v").outcome, Outcome::kUnsupported);
}

TEST(BenchSession, a_graph_is_unsupported_without_a_gpu) {
  const Row row = rows_of({variant("v", sums)}, Pass::kGraph).at("v");
  EXPECT_EQ(row.outcome, Outcome::kUnsupported);
  EXPECT_EQ(row.sentence, "CUDA graphs need a GPU");
}

TEST(BenchSession, a_crash_costs_its_own_row) {
  int runs = 0;  // of this variant in the child that crashes: two to warm up, then in the timed rounds
  const auto rows = rows_of(
      {variant("a", sums), variant("at_once", [](const Inputs&) -> Outputs { return void(std::raise(SIGKILL)), Outputs{}; }),
       variant("later", [&](const Inputs& in) { return ++runs > 10 ? void(std::raise(SIGKILL)) : void(), sums(in); })});
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows.at("a").outcome, Outcome::kMeasured);
  for (const char* name : {"at_once", "later"}) {
    EXPECT_EQ(rows.at(name).outcome, Outcome::kCrashed);
    EXPECT_THAT(rows.at(name).sentence, HasSubstr("signal 9"));
  }
}

}  // namespace
}  // namespace attest::bench
