#include "harness/trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/error.h"
#include "harness/materialise.h"

namespace attest {
namespace {

using testing::HasSubstr;

KernelVariant variant(std::function<Outputs(const Inputs&)> run) {
  KernelVariant v;
  v.name = "softmax.cpu.stand_in";
  v.domain.ops = {Op::kSoftmax};
  v.promises = {"stand_in"};
  v.run = std::move(run);
  return v;
}

Property property(std::function<Verdict(Trial&)> check) {
  Property p;
  p.name = "stand_in";
  p.check = std::move(check);
  return p;
}

Verdict judged(const KernelVariant& variant, const Property& property) {
  const Case c = parse_case("op=softmax B=1 Hq=1 Hkv=1 Sq=1 Skv=1 D=2 fp32");
  SharedCase shared(materialise(c), c, [](Event::Kind) {});
  CaseTrial trial(shared, variant);
  return judge_cell(trial, shared, property);
}

/// One function for each thing that code may throw.
template <class Result>
std::vector<std::function<Result()>> throwing() {
  return {[]() -> Result { throw Error("a sentence"); },
          []() -> Result { throw UsageError("a sentence"); },
          []() -> Result { throw std::runtime_error("a sentence"); },
          []() -> Result { TORCH_CHECK(false, "a sentence"); },
          []() -> Result { throw OracleFailure("a sentence"); }};
}

const auto kRuns = [](Trial& trial) { return trial.outputs(), pass(); };

TEST(Trial, whatever_a_kernel_throws_is_a_launch_error_with_its_text) {
  for (const auto& fail : throwing<Outputs>()) {
    const Verdict verdict = judged(variant([&](const Inputs&) { return fail(); }), property(kRuns));
    EXPECT_EQ(verdict.status, Status::kLaunchError);
    EXPECT_THAT(verdict.sentence, HasSubstr("a sentence"));
  }
  EXPECT_EQ(judged(variant([](const Inputs&) -> Outputs { throw 42; }), property(kRuns)).status, Status::kLaunchError);
}

TEST(Trial, what_its_refusal_throws_is_the_kernels_doing_too) {
  KernelVariant v = variant([](const Inputs&) { return Outputs{}; });
  v.refuses = [](const Inputs&) -> std::optional<std::string> { throw Error("a sentence"); };
  EXPECT_EQ(judged(v, property(kRuns)).status, Status::kLaunchError);
}

TEST(Trial, a_kernel_that_asks_for_too_much_memory_is_out_of_memory) {
  const std::vector<std::function<Outputs(const Inputs&)>> greedy = {
      [](const Inputs&) -> Outputs { throw OutOfMemoryError("too much"); },
      [](const Inputs&) -> Outputs { throw std::bad_alloc(); },
      [](const Inputs&) -> Outputs { return {.out = at::empty({int64_t{1} << 50})}; }};
  for (const auto& run : greedy) EXPECT_EQ(judged(variant(run), property(kRuns)).status, Status::kOutOfMemory);
}

TEST(Trial, what_a_law_itself_throws_is_no_verdict_on_the_kernel) {
  const KernelVariant sound = variant([](const Inputs&) { return Outputs{}; });
  std::vector<std::function<Verdict()>> fails = throwing<Verdict>();
  fails.push_back([]() -> Verdict { throw std::bad_alloc(); });
  fails.push_back([]() -> Verdict { throw 42; });
  for (const auto& fail : fails)
    EXPECT_EQ(judged(sound, property([&](Trial& trial) { return trial.outputs(), fail(); })).status, Status::kHarnessError);
}

TEST(Trial, a_known_failure_stays_one_when_the_kernel_throws) {
  KernelVariant v = variant([](const Inputs&) -> Outputs { throw 42; });
  v.known_failures = {{"stand_in", "a reference"}};
  EXPECT_EQ(judged(v, property(kRuns)).status, Status::kKnownFailure);
}

}  // namespace
}  // namespace attest
