#include "harness/job.h"

#include <gtest/gtest.h>

#include "harness/error.h"

namespace attest {
namespace {

TEST(Job, survives_the_pipe) {
  Job job;
  job.source.made_by = parse_case("op=stickbreaking B=2 Hq=4 Hkv=2 Sq=3 Skv=9 D=8 fp16 causal dlse seed=12");
  job.source.edits = {"zero q", "keep keys 0 4"};
  job.cells = {{"stickbreaking.cpu.fixed_order", "returns"}, {"a", "b"}};
  job.record = "/tmp/x \"quoted\".h5";
  const Job again = decode_job(encode(job));
  EXPECT_EQ(again.source, job.source);
  EXPECT_EQ(again.cells, job.cells);
  EXPECT_EQ(again.record, job.record);
  EXPECT_EQ(encode(job).find('\n'), std::string::npos) << "one job, one line";
}

TEST(Event, survives_the_pipe_with_bytes_that_are_no_text) {
  Event event{Event::Kind::kVerdict, {"v", "p"}};
  event.verdict = {Status::kCrashed, "it wrote: \xff\xfe\n", {}};
  const Event again = decode_event(encode(event));
  EXPECT_EQ(again.cell, event.cell);
  EXPECT_EQ(again.verdict.status, Status::kCrashed);
  EXPECT_EQ(encode(event).find('\n'), std::string::npos);
}

TEST(Event, an_unknown_one_is_an_error) { EXPECT_THROW(decode_event(R"({"event": "surprise"})"), Error); }

}  // namespace
}  // namespace attest
