#include "harness/contract.h"

#include <gtest/gtest.h>

namespace attest {
namespace {

double unit(const ErrorUnits& units, ErrorSource source) { return units[static_cast<size_t>(source)]; }

AttentionProblem problem(Dtype dtype) {
  return {.dtype = dtype, .num_heads_q = 6, .num_heads_kv = 2, .seqlen_q = 5, .seqlen_kv = 33, .head_dim = 16, .head_dim_v = 17};
}

TEST(ErrorUnits, of_sequential_sums_grow_with_their_length) {
  const ErrorUnits u = error_units({}, problem(Dtype::kBFloat16));
  EXPECT_EQ(unit(u, ErrorSource::kDotQk), 16 * 0x1p-24);
  EXPECT_EQ(unit(u, ErrorSource::kDotV), 17 * 0x1p-24);
  EXPECT_EQ(unit(u, ErrorSource::kSumKv), 33 * 0x1p-24);
  EXPECT_EQ(unit(u, ErrorSource::kSumQ), 15 * 0x1p-24);
  EXPECT_EQ(unit(u, ErrorSource::kOperand), 0.0);
  EXPECT_EQ(unit(u, ErrorSource::kFlush), 0x1p-126);
  EXPECT_EQ(unit(u, ErrorSource::kLse), 0.0);
}

TEST(ErrorUnits, of_a_matrix_unit_count_steps_of_sixteen) {
  const ErrorUnits u = error_units({.accumulate = Arithmetic::Accumulate::kMatrixUnit}, problem(Dtype::kFloat16));
  EXPECT_EQ(unit(u, ErrorSource::kDotQk), 0x1p-22);
  EXPECT_EQ(unit(u, ErrorSource::kDotV), 2 * 0x1p-22);
  EXPECT_EQ(unit(u, ErrorSource::kSumKv), 3 * 0x1p-22);
}

TEST(ErrorUnits, follow_the_declared_roundings_of_each_dtype) {
  const Arithmetic a{.operands_rounded = true, .p_in_fp16_unscaled = true, .p_from_lse = true};
  EXPECT_EQ(unit(error_units(a, problem(Dtype::kFloat16)), ErrorSource::kOperand), 0x1p-11);
  EXPECT_EQ(unit(error_units(a, problem(Dtype::kBFloat16)), ErrorSource::kOperand), 0x1p-8);
  EXPECT_EQ(unit(error_units(a, problem(Dtype::kFloat32)), ErrorSource::kOperand), 0.0);
  EXPECT_EQ(unit(error_units(a, problem(Dtype::kFloat16)), ErrorSource::kFlush), 0x1p-25);
  EXPECT_EQ(unit(error_units(a, problem(Dtype::kBFloat16)), ErrorSource::kFlush), 0x1p-126);
  EXPECT_EQ(unit(error_units(a, problem(Dtype::kFloat16)), ErrorSource::kLse), 0x1p-24);
}

TEST(ToleranceContract, prefers_the_tolerance_of_a_quantity) {
  const ToleranceContract c{.tolerance = forward_error(2), .per_quantity = {{Quantity::kDq, ulps(3)}}};
  EXPECT_EQ(c.of(Quantity::kOut), forward_error(2));
  EXPECT_EQ(c.of(Quantity::kDq), ulps(3));
}

TEST(Tolerance, prints_as_it_is_written) {
  EXPECT_EQ(to_string(forward_error(2)), "forward_error(2)");
  EXPECT_EQ(to_string(bitwise()), "bitwise");
  EXPECT_EQ(to_string(elementwise(1e-5, 0.125)), "elementwise(1e-05, 0.125)");
  EXPECT_EQ(to_string(ulps(1.5)), "ulps(1.5)");
  EXPECT_EQ(to_string(times_baseline(2)), "times_baseline(2)");
}

}  // namespace
}  // namespace attest
