#include "harness/noise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace attest {
namespace {

TEST(Philox, gives_the_published_answers) {
  // kat_vectors of Random123, philox4x32 with 10 rounds.
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}), (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Noise, the_normal_has_mean_0_variance_1_and_the_kurtosis_of_a_sum_of_8) {
  const Noise noise(3);
  const int n = 200000;
  double sum = 0, square = 0, fourth = 0;
  for (int i = 0; i < n; ++i) {
    const double x = noise.normal(Stream::kQ, {.position = i});
    ASSERT_LT(std::abs(x), 4.9);
    sum += x, square += x * x, fourth += x * x * x * x;
  }
  EXPECT_NEAR(sum / n, 0, 0.01);
  EXPECT_NEAR(square / n, 1, 0.015);
  EXPECT_NEAR(fourth / n, 3 - 1.2 / 8, 0.06);
}

TEST(Noise, every_part_of_the_place_and_the_stream_and_the_seed_matter) {
  std::set<PhiloxBlock> seen;
  for (uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32})
    for (Stream stream : {Stream::kQ, Stream::kK})
      for (const Place& at : {Place{}, Place{.batch = 1}, Place{.head = 1}, Place{.position = 1}, Place{.dim = 1}})
        EXPECT_TRUE(seen.insert(Noise(seed).block(stream, at)).second);
}

TEST(Noise, around_one_lies_in_its_interval) {
  double low = 2, high = 0;
  for (int i = 0; i < 10000; ++i) {
    const double x = Noise(1).around_one(Stream::kK, {.dim = i});
    low = std::min(low, x), high = std::max(high, x);
  }
  EXPECT_GE(low, 0.5);
  EXPECT_LT(low, 0.51);
  EXPECT_LT(high, 1.5);
  EXPECT_GT(high, 1.49);
}

}  // namespace
}  // namespace attest
