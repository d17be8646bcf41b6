#include "tools/bench/graph.h"

#include <gtest/gtest.h>

#include "harness/error.h"
#include "harness/tensors.h"

namespace attest::bench {
namespace {

TEST(GraphOnGpu, what_is_captured_is_replayed_without_the_host) {
  if (auto why = load_cuda()) GTEST_SKIP() << *why;
  at::Tensor x = at::zeros({1}, at::TensorOptions(at::kFloat).device(torch_device(Device::kCuda)));
  int calls = 0;
  const std::function<double()> replay = captured([&] { ++calls, x.add_(1); });
  EXPECT_EQ(calls, 2 + kCallsInGraph);
  EXPECT_EQ(x.item<float>(), 2);
  EXPECT_GT(replay(), 0);
  EXPECT_EQ(calls, 2 + kCallsInGraph);
  EXPECT_EQ(x.item<float>(), 2 + kCallsInGraph);
}

TEST(GraphOnGpu, what_cannot_be_captured_leaves_the_device_usable) {
  if (auto why = load_cuda()) GTEST_SKIP() << *why;
  const at::Tensor x = at::ones({1}, at::TensorOptions(at::kFloat).device(torch_device(Device::kCuda)));
  int calls = 0;
  EXPECT_ANY_THROW(captured([&] {
    if (++calls > 2) throw LaunchError("not in a graph");
  }));
  EXPECT_EQ((x + x).item<float>(), 2);
}

}  // namespace
}  // namespace attest::bench
