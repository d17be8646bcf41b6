#include "harness/shrink.h"

#include <gtest/gtest.h>

#include "harness/edit.h"
#include "harness/materialise.h"

namespace attest {
namespace {

Inputs inputs_of(const Source& source) {
  Inputs in = materialise(*source.made_by);
  for (const std::string& edit : source.edits) in = apply_edit(in, edit);
  return in;
}

ShrinkTask task(std::function<Status(const Source&)> judge) {
  ShrinkTask t;
  t.source.made_by =
      parse_case("op=softmax B=3 Hq=6 Hkv=2 Sq=20 Skv=70 D=24 Dv=24 bf16 causal padding=some dlse layout=transposed seed=9");
  t.verdict = {Status::kIncorrect, "first", {}};
  t.probe = [judge](const Source& source, bool) { return Verdict{judge(source), "again", {}}; };
  t.inputs_of = inputs_of;
  return t;
}

TEST(Shrink, ends_at_the_smallest_case_that_fails) {
  const ShrinkResult r =
      shrink(task([](const Source& s) { return s.made_by->problem.seqlen_kv >= 17 ? Status::kIncorrect : Status::kPass; }));
  const AttentionProblem& p = r.minimum.made_by->problem;
  EXPECT_EQ(p.seqlen_kv, 17);
  EXPECT_EQ(p.batch, 1);
  EXPECT_EQ(p.num_heads_q, 1);
  EXPECT_EQ(p.seqlen_q, 1);
  EXPECT_EQ(p.head_dim, 1);
  EXPECT_EQ(r.verdict.status, Status::kIncorrect);
  EXPECT_GT(r.shrinks, 0);
  EXPECT_GE(r.probes, r.shrinks);
}

TEST(Shrink, another_kind_of_failure_is_not_accepted) {
  const ShrinkResult r =
      shrink(task([](const Source& s) { return s.made_by->problem.batch == 3 ? Status::kIncorrect : Status::kCrashed; }));
  EXPECT_EQ(r.minimum.made_by->problem.batch, 3);
}

TEST(Shrink, a_minimum_that_comes_out_otherwise_when_run_again_is_flaky) {
  ShrinkTask t = task([](const Source&) { return Status::kIncorrect; });
  t.probe = [](const Source&, bool final) { return Verdict{final ? Status::kPass : Status::kIncorrect, "", {}}; };
  EXPECT_EQ(shrink(t).verdict.status, Status::kFlaky);
}

TEST(Shrink, data_are_simplified_once_a_tensor_and_only_while_it_fails) {
  const ShrinkResult r =
      shrink(task([](const Source& s) { return inputs_of(s).q.ne(0).any().item<bool>() ? Status::kIncorrect : Status::kPass; }));
  EXPECT_EQ(std::count(r.minimum.edits.begin(), r.minimum.edits.end(), "zero q"), 0);
  EXPECT_EQ(std::count(r.minimum.edits.begin(), r.minimum.edits.end(), "ones q"), 1);
  EXPECT_EQ(std::count(r.minimum.edits.begin(), r.minimum.edits.end(), "zero v"), 1);
  EXPECT_EQ(std::count(r.minimum.edits.begin(), r.minimum.edits.end(), "ones v"), 0);
}

TEST(Shrink, gives_up_after_its_probes_and_keeps_what_it_has) {
  ShrinkTask t = task([](const Source&) { return Status::kPass; });
  t.max_probes = 5;
  const ShrinkResult r = shrink(t);
  EXPECT_EQ(r.shrinks, 0);
  EXPECT_LE(r.probes, 5);
  EXPECT_EQ(*r.minimum.made_by, *t.source.made_by);
}

TEST(Shrink, an_interrupt_ends_it_with_the_smallest_so_far) {
  bool stop = false;
  ShrinkTask t = task([](const Source&) { return Status::kPass; });
  int64_t probes = 0;
  t.probe = [&](const Source&, bool) {
    stop = ++probes == 2;  // the first candidate is accepted, the second is cut short, and so is the last run
    return Verdict{probes == 1 ? Status::kIncorrect : Status::kHarnessError, "of the probe", {}};
  };
  t.interrupted = [&] { return stop || probes > 2; };
  const ShrinkResult r = shrink(t);
  EXPECT_TRUE(r.interrupted);
  EXPECT_EQ(probes, 3);
  EXPECT_EQ(r.shrinks, 1);
  EXPECT_NE(*r.minimum.made_by, *t.source.made_by);
  EXPECT_EQ(r.verdict.status, Status::kIncorrect);
}

}  // namespace
}  // namespace attest
