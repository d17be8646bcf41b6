// Random numbers for the data of a case: each a function of (seed, stream, batch, head, position, dim) alone, exact in double.
#pragma once

#include <cstdint>

#include "harness/philox.h"

namespace attest {

/// What a number is drawn for; distinct streams are independent.
enum class Stream : uint8_t {
  kQ,
  kK,
  kV,
  kDout,
  kDlse,
  kMask,
  kLayout,
  kPoison,
  kQRow,
  kKRow,
  kPattern,
  kQDetail,
  kKDetail,
  kVDetail,
  kDoutDetail,
  kLengths,
};

struct Place {
  int64_t batch = 0, head = 0, position = 0, dim = 0;  // batch, head, position < 2^32, dim < 2^24
};

class Noise {
 public:
  explicit Noise(uint64_t seed) : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)} {}

  PhiloxBlock block(Stream stream, const Place& p) const {
    return philox({static_cast<uint32_t>(p.dim) | static_cast<uint32_t>(stream) << 24, static_cast<uint32_t>(p.position),
                   static_cast<uint32_t>(p.head), static_cast<uint32_t>(p.batch)},
                  key_);
  }
  uint32_t word(Stream stream, const Place& p) const { return block(stream, p)[0]; }
  double sign(Stream stream, const Place& p) const { return (word(stream, p) & 1) != 0 ? -1.0 : 1.0; }

  /// Nearly normal: the sum of 8 uniform 16-bit integers, less its mean, times √1.5 · 2^-16 to 17 bits: mean 0, variance 1,
  /// |x| < 4.9. An integer times 2^-32.
  double normal(Stream stream, const Place& p) const {
    int64_t sum = -8 * 65535 / 2;
    for (const uint32_t w : block(stream, p)) sum += (w & 0xFFFF) + (w >> 16);
    return static_cast<double>(sum * 80265) * 0x1p-32;
  }

  /// Uniform in [1/2, 3/2), a multiple of 2^-24.
  double around_one(Stream stream, const Place& p) const {
    return static_cast<double>((word(stream, p) >> 8) + (1U << 23)) * 0x1p-24;
  }

 private:
  std::array<uint32_t, 2> key_;
};

}  // namespace attest
