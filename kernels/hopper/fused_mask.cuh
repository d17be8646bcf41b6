// The key-padding mask as bits.
#pragma once

#include <cstdint>

namespace attest::fused {
namespace {

constexpr int kMaskThreads = 256;

/// bits[batch][words]: bit j%32 of word j/32 says that key j is kept; bits past `keys` are 0. `count`: batch · words.
__global__ void __launch_bounds__(kMaskThreads) pack_mask(const uint8_t* keep, int64_t keep_batch, int64_t keep_key, int64_t keys,
                                                      int64_t words, int64_t count, uint32_t* bits) {
  for (int64_t i = blockIdx.x * int64_t{kMaskThreads} + threadIdx.x; i < count; i += gridDim.x * int64_t{kMaskThreads}) {
    const int64_t batch = i / words, first = i % words * 32;
    uint32_t word = 0;
    for (int64_t j = 0; j < 32 && first + j < keys; ++j)
      if (keep[batch * keep_batch + (first + j) * keep_key] != 0) word |= 1U << j;
    bits[i] = word;
  }
}

}  // namespace
}  // namespace attest::fused
