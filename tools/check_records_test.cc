// Records are made in a child process each (a death test), since the registry is the program's own.
#include "tools/check_records.h"

#include <gtest/gtest.h>

#include "harness/error.h"
#include "harness/oracle.h"
#include "harness/property.h"
#include "harness/tensors.h"

namespace attest {
namespace {

KernelVariant variant(const std::string& name) {
  KernelVariant v;
  v.name = name;
  v.run = [](const Inputs&) { return Outputs{}; };
  return v;
}

/// Prints what check_records() says once `record` is registered.
template <class T>
void check_with(const T& record) {
  Registry<T>::instance().add(record);
  try {
    check_records();
  } catch (const Error& e) {
    fprintf(stderr, "%s", e.what());
  }
  exit(0);
}

template <class T>
void expect_refused(const T& record, const std::string& sentence) {
  EXPECT_EXIT(check_with(record), testing::ExitedWithCode(0), sentence);
}

TEST(CheckRecordsDeathTest, a_fault_of_a_record_is_named_with_the_record) {
  expect_refused(variant("softmax.cpu.fixed_order"), "two variant records are called softmax.cpu.fixed_order");
  expect_refused(variant("soft max"), "the variant 'soft max' has a name with other characters");
  expect_refused(variant("a/b"), "the variant 'a/b'");
  expect_refused(variant(""), "a registered variant has no name");
  KernelVariant v = variant("mine");
  v.promises = {"retuns"};
  expect_refused(v, "the variant mine promises 'retuns', which is no property");
  v = variant("mine");
  v.known_failures = {{"batch_size", "there is only .forward and .gradients"}};
  expect_refused(v, "the variant mine has the known failure 'batch_size'");
  v = variant("mine");
  v.run = nullptr;
  expect_refused(v, "the variant mine has no .run");
  expect_refused(Property{.name = "mine"}, "the property mine has no .check");
  expect_refused(Oracle{.name = "mine"}, "the oracle mine has no .evaluate");
}

TEST(CheckRecords, what_is_shipped_has_none) { EXPECT_NO_THROW(check_records()); }

}  // namespace
}  // namespace attest
