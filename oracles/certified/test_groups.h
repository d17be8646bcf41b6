// Random groups for the tests of the certified tiers: data, masks with NaN behind them, and room for the answer.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "oracles/group_problem.h"

namespace attest::certified {

/// Owns what a GroupProblem points to.
struct Group {
  GroupProblem problem;
  std::vector<double> q, k, v, dout, dlse;
  std::vector<uint8_t> keep;
};

inline double to_bits(double x, int bits) {
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent);
  return x == 0 ? 0 : std::ldexp(std::nearbyint(std::ldexp(fraction, bits)), exponent - bits);
}

/// Fills `shape` (its sizes, op and masks are set): normal numbers of `significand_bits`, q and k times `gain`.
inline Group random_group(GroupProblem shape, double gain, bool pad, uint64_t seed) {
  Group g;
  std::mt19937_64 engine(seed);
  const auto fill = [&](std::vector<double>& to, int64_t count, double factor, int bits) {
    for (int64_t n = 0; n < count; ++n) {
      const double uniform = static_cast<double>(static_cast<int64_t>(engine() >> 11)) * 0x1p-52 - 1;
      to.push_back(to_bits(uniform * factor, bits));
    }
  };
  const int64_t rows = shape.rows(), bits = shape.significand_bits;
  fill(g.q, rows * shape.head_dim, gain, bits);
  fill(g.k, shape.n_kv * shape.head_dim, gain, bits);
  fill(g.v, shape.n_kv * shape.head_dim_v, 2, bits);
  fill(g.dout, rows * shape.head_dim_v, 2, bits);
  fill(g.dlse, rows, 2, 24);
  for (int64_t j = 0; pad && j < shape.n_kv; ++j) {
    g.keep.push_back(engine() % 4 != 0);
    if (g.keep[j] != 0) continue;
    for (int64_t d = 0; d < shape.head_dim; ++d) g.k[j * shape.head_dim + d] = std::numeric_limits<double>::quiet_NaN();
    for (int64_t d = 0; d < shape.head_dim_v; ++d) g.v[j * shape.head_dim_v + d] = std::numeric_limits<double>::quiet_NaN();
  }
  g.problem = shape;
  g.problem.softmax_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(shape.head_dim)));
  return g;
}
/// With the pointers set: call after the last change to the data.
inline const GroupProblem& problem_of(Group& g) {
  g.problem.q = g.q.data();
  g.problem.k = g.k.data();
  g.problem.v = g.v.data();
  g.problem.dout = g.dout.data();
  g.problem.dlse = g.dlse.data();
  g.problem.keep = g.keep.empty() ? nullptr : g.keep.data();
  return g.problem;
}

/// Owns what a GroupReference points to.
struct Answer {
  explicit Answer(const GroupProblem& p, bool terms = false) {
    const int64_t rows = p.rows();
    const int64_t elements[] = {rows * p.head_dim_v, rows, rows * p.head_dim, p.n_kv * p.head_dim, p.n_kv * p.head_dim_v};
    constexpr double kUnset = std::numeric_limits<double>::quiet_NaN();
    for (size_t n = 0; n < reference.of.size(); ++n) {
      hi[n].assign(elements[n], kUnset);
      lo[n] = radius[n] = hi[n];
      reference.of[n] = {hi[n].data(), lo[n].data(), radius[n].data(), nullptr, nullptr, elements[n], elements[n]};
      if (!terms) continue;
      this->terms[n].assign(8 * elements[n], kUnset);
      trivial[n] = hi[n];
      reference.of[n].terms = this->terms[n].data();
      reference.of[n].trivial = trivial[n].data();
    }
  }

  GroupReference reference;
  std::vector<double> hi[5], lo[5], radius[5], terms[5], trivial[5];
};

}  // namespace attest::certified
