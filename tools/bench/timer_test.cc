#include "tools/bench/timer.h"

#include <gtest/gtest.h>

namespace attest::bench {
namespace {

TEST(Percentile, is_linear_between_order_statistics) {
  EXPECT_EQ(percentile({7}, 0.9), 7);
  EXPECT_EQ(percentile({3, 1, 2}, 0.5), 2);
  EXPECT_EQ(percentile({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(percentile({0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100}, 0.1), 10);
  EXPECT_DOUBLE_EQ(percentile({0, 1}, 0.9), 0.9);
  EXPECT_EQ(percentile({5, 1, 9}, 0), 1);
  EXPECT_EQ(percentile({5, 1, 9}, 1), 9);
}

TEST(Timer, runs_what_it_times_once) {
  const Timer timer = timer_of(Device::kCpu);
  int runs = 0;
  EXPECT_GE(timer.time([&] { ++runs; }), 0);
  EXPECT_EQ(runs, 1);
  EXPECT_FALSE(timer.peak_bytes([&] { ++runs; }));
  EXPECT_EQ(runs, 2);
  EXPECT_TRUE(timer.healthy());
}

}  // namespace
}  // namespace attest::bench
