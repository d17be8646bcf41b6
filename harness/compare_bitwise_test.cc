#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

#include "harness/compare.h"
#include "harness/tensors.h"

namespace attest {
namespace {

using Outcome = Comparison::Outcome;

at::Tensor from_bits(const std::vector<int32_t>& bits) { return at::tensor(bits, at::kInt).view(at::kFloat); }
at::Tensor from_bits16(const std::vector<int16_t>& bits, at::ScalarType type) { return at::tensor(bits, at::kShort).view(type); }

TEST(CompareBitwise, tells_the_zeros_apart) {
  for (at::ScalarType type : {at::kHalf, at::kBFloat16, at::kFloat}) {
    const at::Tensor zero = at::zeros({1}, type);
    EXPECT_EQ(compare_bitwise(zero, zero.neg()).outcome, Outcome::kFail);
    EXPECT_EQ(compare_bitwise(zero.neg(), zero.neg()).outcome, Outcome::kPass);
  }
}

TEST(CompareBitwise, never_accepts_nan_unless_both_are_and_it_may) {
  const at::Tensor quiet = from_bits({0x7FC00000}), other = from_bits({-1}), number = at::ones({1});
  EXPECT_EQ(compare_bitwise(quiet, quiet).outcome, Outcome::kFail);
  EXPECT_EQ(compare_bitwise(quiet, other, true).outcome, Outcome::kPass);
  EXPECT_EQ(compare_bitwise(quiet, number, true).outcome, Outcome::kFail);
  EXPECT_EQ(compare_bitwise(number, quiet, true).outcome, Outcome::kFail);
  const at::Tensor half = from_bits16({0x7C01}, at::kHalf), bf16 = from_bits16({0x7F81}, at::kBFloat16);
  EXPECT_EQ(compare_bitwise(half, half).outcome, Outcome::kFail);
  EXPECT_EQ(compare_bitwise(bf16, bf16).outcome, Outcome::kFail);
  EXPECT_EQ(compare_bitwise(half, half, true).outcome, Outcome::kPass);
}

TEST(CompareBitwise, accepts_equal_infinities) {
  const at::Tensor a = at::full({3}, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(compare_bitwise(a, a).outcome, Outcome::kPass);
  EXPECT_EQ(compare_bitwise(a, a.neg()).outcome, Outcome::kFail);
}

RC_GTEST_PROP(CompareBitwise, passes_exactly_when_bits_are_equal, ()) {
  const auto bits = *rc::gen::container<std::vector<int32_t>>(5, rc::gen::inRange<int32_t>(0, 0x7F000000));
  const int at = *rc::gen::inRange(0, 5), bit = *rc::gen::inRange(0, 20);
  std::vector<int32_t> changed = bits;
  changed[at] ^= 1 << bit;
  RC_ASSERT(compare_bitwise(from_bits(bits), from_bits(bits)).outcome == Outcome::kPass);
  const Comparison c = compare_bitwise(from_bits(changed), from_bits(bits));
  RC_ASSERT(c.outcome == Outcome::kFail && c.failing == 1 && c.index == std::vector<int64_t>{at});
  RC_ASSERT((c.actual_bits ^ c.expected_bits) == uint64_t{1} << bit);
}

TEST(CompareBitwise, fails_on_another_shape_or_dtype_or_on_nothing) {
  const at::Tensor a = at::ones({2, 3});
  for (const at::Tensor& other : {at::ones({3, 2}), at::ones({2, 3}, at::kHalf), at::Tensor()}) {
    const Comparison c = compare_bitwise(a, other);
    EXPECT_EQ(c.outcome, Outcome::kFail);
    EXPECT_FALSE(c.sentence.empty());
  }
  EXPECT_EQ(compare_bitwise(at::empty({0}), at::empty({0})).outcome, Outcome::kFail);
}

TEST(CompareBitwise, reads_any_strides_and_masks_too) {
  const at::Tensor a = at::arange(6, at::kFloat).reshape({2, 3});
  EXPECT_EQ(compare_bitwise(a.t(), a.t().contiguous()).outcome, Outcome::kPass);
  const at::Tensor mask = at::tensor({1, 0, 1}, at::kInt).to(at::kBool);
  EXPECT_EQ(compare_bitwise(mask, mask.clone()).outcome, Outcome::kPass);
  EXPECT_EQ(compare_bitwise(mask, mask.logical_not()).failing, 3);
}

}  // namespace
}  // namespace attest
