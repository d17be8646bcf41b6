// The working precision of the oracles: binary floating point of 192 bits (57 decimal digits), three machine words.
#pragma once

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cstdint>
#include <vector>

namespace attest {

using Wide = boost::multiprecision::number<
    boost::multiprecision::cpp_bin_float<192, boost::multiprecision::digit_base_2>, boost::multiprecision::et_off>;

/// Unit roundoff of Wide.
inline constexpr double kWideUnit = 0x1p-192;

/// e^x for x ≤ 0 within 8·kWideUnit + |x|·kWideUnit, relative. Below −2^20 the result is 0: such a number is under 2^−1.5e6,
/// and no double that is made from it can tell.
Wide exp_nonpositive(const Wide& x);

/// The exponent e of the lowest set bit of the numbers in x[0, n), so that each is an integer times 2^e.
/// kNotFinite where one is NaN or infinite; 0 where all are zero.
inline constexpr int kNotFinite = INT32_MIN;
int lowest_bit(const double* x, int64_t n);

struct Dot {
  Wide value;       // Σ a·b
  double absolute;  // Σ |a||b|, rounded to double
};

/// `low` is the sum of the lowest bits of a and b, whose elements have at most 24 significant bits (so that products are
/// exact in double). The value is exact where bits allow: always for 16-bit data, and for fp32 data of like magnitudes;
/// else within n·kWideUnit·Σ|a||b|.
Dot dot(const double* a, const double* b, int64_t n, int low);

}  // namespace attest
