#include <gtest/gtest.h>
#include "harness/tensors.h"
TEST(Smoke, torch_is_there) { EXPECT_EQ(at::ones({3}).sum().item<float>(), 3.0F); }
