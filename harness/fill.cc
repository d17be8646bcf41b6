#include "harness/fill.h"

#include <algorithm>
#include <cmath>

namespace attest {
namespace {

bool odd(int64_t i) { return i % 2 != 0; }
double sign_if(bool negative) { return negative ? -1.0 : 1.0; }
bool half(const Case& c) { return c.problem.dtype == Dtype::kFloat16; }

/// The factors of q and k: powers of two, times an integer of 10 bits, so that every element stays exact in double.
struct Amplitudes {
  double q = 1.0, k = 1.0;
};

/// z = scale · Σ_d q·k has D terms of one sign, of mean 1 before the factors: their product must be magnitude / (|scale| D).
Amplitudes amplitudes_for(const Case& c) {
  const AttentionProblem& p = c.problem;
  const double magnitude = std::min(static_cast<double>(c.magnitude), 0x1p90);
  int exponent = 0;
  const double mantissa = std::frexp(magnitude / (std::abs(static_cast<double>(p.softmax_scale)) * p.head_dim), &exponent);
  const int limit = half(c) ? 15 : 100;  // 1.5 · 2^15 is finite in fp16
  const int exponent_k = std::clamp(exponent >> 1, half(c) ? -10 : -100, limit);
  const int exponent_q = std::clamp(exponent - exponent_k, half(c) ? -10 : -100, limit);
  return {std::ldexp(std::ceil(mantissa * 1024), exponent_q - 10), std::ldexp(1.0, exponent_k)};
}

/// Σ_d of terms of one sign: row and column signs make z = ± magnitude, or − magnitude everywhere.
void fill_saturated(const Case& c, const Noise& noise, Fills& fills) {
  const Amplitudes factor = amplitudes_for(c);
  const bool negative = c.logits == LogitFill::kNegative;
  const double sign_k = negative && c.problem.softmax_scale > 0 ? -1.0 : 1.0;
  auto element = [noise, negative](Stream stream, Stream row, const Place& at) {
    const double pattern = noise.sign(Stream::kPattern, {.dim = at.dim});
    const double sign = negative ? 1.0 : noise.sign(row, {at.batch, at.head, at.position, 0});
    return pattern * sign * noise.around_one(stream, at);
  };
  fills.q = [=](const Place& at) { return factor.q * element(Stream::kQ, Stream::kQRow, at); };
  fills.k = [=](const Place& at) { return factor.k * sign_k * element(Stream::kK, Stream::kKRow, at); };
}

/// Dims 2m and 2m+1 of q are equal, those of k opposite but for a detail; keys 2m and 2m+1 differ in a finer detail.
void fill_cancelling_logits(const Case& c, const Noise& noise, Fills& fills) {
  const int64_t paired = c.problem.head_dim / 2 * 2;
  fills.q = [=](const Place& at) {
    if (at.dim >= paired) return noise.normal(Stream::kQ, at);
    return 4 * noise.normal(Stream::kQ, {at.batch, at.head, at.position, at.dim / 2});
  };
  fills.k = [=](const Place& at) {
    const Place pair{at.batch, at.head, at.position / 2, at.dim};
    const double finer = odd(at.position) ? 0x1p-5 * noise.normal(Stream::kKDetail, at) : 0.0;
    if (at.dim >= paired) return noise.normal(Stream::kK, pair) + finer;
    const double common = 4 * noise.normal(Stream::kK, {pair.batch, pair.head, pair.position, at.dim / 2});
    return odd(at.dim)
               ? finer + 0.25 * noise.normal(Stream::kKDetail, {pair.batch, pair.head, pair.position, at.dim + (1 << 23)}) -
                     common
               : common;
  };
}

/// One non-zero in each row, at one of four dims: ± 2^a in q, ± magnitude / 2^a in k.
void fill_one_hot_logits(const Case& c, const Noise& noise, Fills& fills) {
  int exponent = 0;
  std::frexp(std::min(c.magnitude, 0x1p90F), &exponent);
  const double q = std::ldexp(1.0, exponent / 2), k = std::min(static_cast<double>(c.magnitude), 0x1p90) / q;
  const auto dims = static_cast<uint32_t>(std::min<int64_t>(c.problem.head_dim, 4));
  const int64_t step = c.problem.head_dim / dims;
  auto element = [=](Stream row, const Place& at, double value) {
    const uint32_t word = noise.word(row, {at.batch, at.head, at.position, 0});
    return at.dim == (word >> 1) % dims * step ? sign_if(odd(word)) * value : 0.0;
  };
  fills.q = [=](const Place& at) { return element(Stream::kQRow, at, q); };
  fills.k = [=](const Place& at) { return element(Stream::kKRow, at, k); };
}

void fill_logits(const Case& c, const Noise& noise, Fills& fills) {
  double factor_q = 1.0, factor_k = 1.0;
  switch (c.logits) {
    case LogitFill::kSaturated:
    case LogitFill::kNegative:
      return fill_saturated(c, noise, fills);
    case LogitFill::kCancelling:
      return fill_cancelling_logits(c, noise, fills);
    case LogitFill::kOneHot:
      return fill_one_hot_logits(c, noise, fills);
    case LogitFill::kSubnormal:
      factor_q = half(c) ? 0x1p-17 : 0x1p-129;
      factor_k = half(c) ? 0x1p8 : 0x1p104;
      break;
    case LogitFill::kNormal:
    case LogitFill::kEqual:
      break;
  }
  const bool equal = c.logits == LogitFill::kEqual;
  fills.q = [=](const Place& at) { return factor_q * noise.normal(Stream::kQ, at); };
  fills.k = [=](const Place& at) {
    return factor_k * noise.normal(Stream::kK, {at.batch, at.head, equal ? 0 : at.position, at.dim});
  };
}

void fill_cancelling_values(const Noise& noise, Fills& fills) {
  fills.v = [=](const Place& at) {
    const Place pair{at.batch, at.head, at.position / 2, at.dim / 2};
    return sign_if(odd(at.position)) * 4 * noise.normal(Stream::kV, pair) + 0.25 * noise.normal(Stream::kVDetail, at);
  };
  fills.dout = [=](const Place& at) {
    const Place pair{at.batch, at.head, at.position / 2, at.dim / 2};
    return sign_if(odd(at.position) != odd(at.dim)) * 4 * noise.normal(Stream::kDout, pair) +
           0.25 * noise.normal(Stream::kDoutDetail, at);
  };
}

void fill_values(const Case& c, const Noise& noise, Fills& fills) {
  const int64_t dims = c.problem.head_dim_v;
  const bool constant = c.values == ValueFill::kConstant, subnormal = c.values == ValueFill::kSubnormal;
  const double tiny = half(c) ? 0x1p-17 : 0x1p-129, large = half(c) ? 0x1p12 : 0x1p60;
  if (c.values == ValueFill::kCancelling) return fill_cancelling_values(noise, fills);
  if (c.values == ValueFill::kOneHot) {
    fills.v = fills.dout = [=](const Place& at) { return at.position % dims == at.dim ? 1.0 : 0.0; };
    return;
  }
  const double factor_v = subnormal ? tiny : c.values == ValueFill::kLarge ? large : 1.0;
  const double factor_dout = c.values == ValueFill::kLarge ? 1 / large : 1.0;
  auto row = [=](const Place& at) { return Place{at.batch, at.head, constant ? 0 : at.position, at.dim}; };
  fills.v = [=](const Place& at) { return factor_v * noise.normal(Stream::kV, row(at)); };
  fills.dout = [=](const Place& at) {
    return (subnormal && odd(at.position) ? tiny : factor_dout) * noise.normal(Stream::kDout, row(at));
  };
}

/// fp16 alone: the power of two by which dout and dlse must shrink so that dq and dk, which are of the order of
/// |scale| · |k| and |scale| · |q| times dout · v, stay finite.
double gradient_factor(const Case& c) {
  if (!half(c)) return 1.0;
  double largest = 4.0;
  if (c.logits == LogitFill::kSubnormal) largest = 0x1p10;
  if (c.logits == LogitFill::kSaturated || c.logits == LogitFill::kNegative)
    largest = std::max(amplitudes_for(c).q, amplitudes_for(c).k);
  if (c.logits == LogitFill::kOneHot) largest = std::sqrt(static_cast<double>(c.magnitude)) * 2;
  int exponent = 0;
  std::frexp(std::abs(static_cast<double>(c.problem.softmax_scale)) * largest / 16, &exponent);
  return std::ldexp(1.0, -std::max(exponent, 0));
}

}  // namespace

Fills fills_of(const Case& c) {
  Fills fills;
  const Noise noise(c.seed);
  fill_logits(c, noise, fills);
  fill_values(c, noise, fills);
  const double shrink = gradient_factor(c);
  fills.dlse = [=](const Place& at) { return shrink * noise.normal(Stream::kDlse, at); };
  if (shrink != 1.0) fills.dout = [dout = fills.dout, shrink](const Place& at) { return shrink * dout(at); };
  return fills;
}

bool keeps_key(const Case& c, int64_t batch, int64_t key) {
  const int64_t keys = c.problem.seqlen_kv;
  const int64_t drawn_for = c.layout == Layout::kExpanded ? 0 : batch;
  const Noise noise(c.seed);
  const PhiloxBlock draw = noise.block(Stream::kMask, {.batch = drawn_for, .dim = 1});
  const int64_t kept = keys > 1 ? 1 + draw[0] % (keys - 1) : 1;  // of kRight and kLeft
  switch (c.padding) {
    case KeyPadding::kNone:
      return true;
    case KeyPadding::kRight:
      return key < kept;
    case KeyPadding::kLeft:
      return key >= keys - kept;
    case KeyPadding::kAll:
      return c.problem.batch > 1 && !odd(batch);
    case KeyPadding::kLeadingTile:
      return key >= keys / 2;
    case KeyPadding::kSome:
      break;
  }
  const int64_t always = draw[1] % keys;
  if (key == always) return true;
  if (key == (always + 1 + draw[2] % (keys - 1)) % keys) return false;
  return odd(noise.word(Stream::kMask, {.batch = drawn_for, .position = key}));
}

}  // namespace attest
