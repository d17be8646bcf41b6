// Laws about the laws.
#include <gtest/gtest.h>

#include <map>

#include "harness/case.h"
#include "harness/materialise.h"
#include "properties/fakes.h"

namespace attest {
namespace {

/// The laws of this folder: the skeleton, compiled with the tests, is none of them.
std::vector<const Property*> laws() {
  std::vector<const Property*> all = Registry<Property>::instance().all();
  std::erase_if(all, [](const Property* p) { return p->name.rfind("NAME", 0) == 0; });
  return all;
}

TEST(Properties, say_their_law_in_a_sentence_and_name_what_they_catch) {
  EXPECT_EQ(laws().size(), 37U);
  for (const Property* p : laws()) {
    EXPECT_EQ(p->law.back(), '.') << p->name;
    EXPECT_EQ(p->faulty.rfind("faulty.", 0), 0U) << p->name;
    EXPECT_FALSE(p->judges.empty()) << p->name;
    EXPECT_EQ(p->domain.empty_reason(), std::nullopt) << p->name;
  }
}

/// Every law accepts the plain kernel on hostile cases, and none is vacuous on all of them.
TEST(Properties, accept_a_sound_kernel) {
  std::map<std::string, int> passed;
  for (const char* line : {
           "op=softmax B=3 Hq=4 Hkv=2 Sq=5 Skv=9 D=8 Dv=8 fp32 causal padding=right poison dlse layout=padded seed=1",
           "op=softmax B=2 Hq=2 Hkv=1 Sq=4 Skv=6 D=8 Dv=4 bf16 padding=all dlse layout=packed-qkv seed=2",
           "op=softmax B=2 Hq=1 Hkv=1 Sq=6 Skv=2 D=8 Dv=8 fp16 causal logits=saturated(30) layout=transposed seed=3",
           "op=stickbreaking B=2 Hq=2 Hkv=2 Sq=5 Skv=5 D=8 Dv=8 fp32 causal padding=left poison dlse seed=4",
           "op=stickbreaking B=2 Hq=4 Hkv=2 Sq=3 Skv=8 D=8 Dv=16 bf16 causal attend_current "
           "logits=saturated(20) padding=right seed=5",
           "op=softmax B=4 Hq=4 Hkv=2 Sq=5 Skv=9 D=8 Dv=8 fp32 causal sequences=packed poison dlse seed=6",
           "op=softmax B=3 Hq=2 Hkv=2 Sq=4 Skv=4 D=8 Dv=8 bf16 sequences=packed padding=some dlse layout=packed-qkv seed=7",
           "op=softmax B=4 Hq=2 Hkv=1 Sq=3 Skv=9 D=8 Dv=8 fp16 causal sequences=lengths poison dlse layout=padded seed=8",
           "op=stickbreaking B=5 Hq=2 Hkv=2 Sq=4 Skv=7 D=8 Dv=8 fp32 sequences=packed poison seed=9",
           "op=stickbreaking B=5 Hq=2 Hkv=1 Sq=2 Skv=7 D=8 Dv=8 bf16 attend_current sequences=lengths poison dlse seed=10",
       }) {
    const Case c = parse_case(line);
    const Inputs in = materialise(c);
    for (const Property* p : laws()) {
      if (p->domain.excludes(c) || p->name.starts_with("equals_")) continue;  // the plain kernel has no twin
      const Verdict v = judged(p->name, plain_kernel(c.problem.op), in);
      EXPECT_TRUE(v.status == Status::kPass || v.status == Status::kVacuous) << p->name << " on " << line << ": " << v.sentence;
      passed[p->name] += v.status == Status::kPass ? 1 : 0;
    }
  }
  for (const auto& [name, times] : passed) EXPECT_GT(times, 0) << name << " is vacuous on every case";
  EXPECT_EQ(passed.size(), laws().size() - 4);
}

TEST(EqualsHostTwin, accepts_the_twin_and_asks_nothing_of_a_variant_that_promises_none) {
  const Inputs in = materialise(parse_case("op=softmax B=2 Hq=2 Hkv=1 Sq=4 Skv=6 D=8 Dv=4 bf16 padding=all dlse seed=2"));
  KernelVariant twin = *Registry<KernelVariant>::instance().find("softmax.cpu.fixed_order");
  EXPECT_EQ(judged("equals_host_twin.gradients", twin, in).status, Status::kUnsupported);
  twin.promises.insert("equals_host_twin.gradients");
  EXPECT_EQ(judged("equals_host_twin.gradients", twin, in).status, Status::kPass);
}

TEST(EqualsTwin, accepts_the_twin_and_asks_nothing_of_a_variant_that_names_none) {
  const Inputs in = materialise(parse_case("op=softmax B=2 Hq=2 Hkv=1 Sq=4 Skv=6 D=8 Dv=4 bf16 padding=all dlse seed=2"));
  KernelVariant variant = *Registry<KernelVariant>::instance().find("softmax.cpu.fixed_order");
  EXPECT_EQ(judged("equals_twin.gradients", variant, in).status, Status::kUnsupported);
  variant.name = "faulty.softmax.unlike_its_twin";  // which names this one
  EXPECT_EQ(judged("equals_twin.forward", variant, in).status, Status::kPass);
  EXPECT_EQ(judged("equals_twin.gradients", variant, in).status, Status::kPass);
}

}  // namespace
}  // namespace attest
