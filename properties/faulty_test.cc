// Every law catches the faulty variant that it names, on generated cases, with the real oracle.
#include <gtest/gtest.h>

#include "harness/generate.h"
#include "harness/materialise.h"
#include "harness/oracle.h"
#include "properties/fakes.h"

namespace attest {
namespace {

const Oracle& oracle_of(Op op) { return *Registry<Oracle>::instance().find(std::string(name_of(op)) + ".definition"); }

/// A trial whose reference is the oracle's.
class OracleTrial : public FakeTrial {
 public:
  using FakeTrial::FakeTrial;
  const Reference& reference() override {
    if (!certified_) certified_ = oracle_of(inputs().problem.op).evaluate(inputs(), 0);
    return *certified_;
  }

 private:
  std::optional<Reference> certified_;
};

class Law : public ::testing::TestWithParam<std::string> {};

TEST_P(Law, catches_the_faulty_variant_it_names) {
  const Property& law = *Registry<Property>::instance().find(GetParam());
  const KernelVariant* faulty = Registry<KernelVariant>::instance().find(law.faulty);
  ASSERT_NE(faulty, nullptr) << "no variant is called " << law.faulty;
  if (law.name == "returns") GTEST_SKIP() << "its variant ends the process: the campaign's tests run it in another";
  CaseDomain domain = law.domain & faulty->domain & oracle_of(faulty->op).domain;
  domain.ops = {faulty->op};
  domain.max_work = 4096;
  ASSERT_EQ(domain.empty_reason(), std::nullopt);
  int judged = 0;
  for (uint64_t index = 0; index < 400; ++index) {
    OracleTrial trial(*faulty, materialise(generate(1, index, domain)), law.judges);
    const Verdict verdict = law.check(trial);
    judged += verdict.status == Status::kPass ? 1 : 0;
    if (verdict.status == Status::kIncorrect) return;
  }
  FAIL() << law.faulty << " passes " << judged << " cases";
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Property* p : Registry<Property>::instance().all())
    if (p->name.rfind("NAME", 0) != 0) all.push_back(p->name);  // the skeleton, compiled with the tests
  return all;
}

INSTANTIATE_TEST_SUITE_P(Properties, Law, ::testing::ValuesIn(names()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

}  // namespace
}  // namespace attest
