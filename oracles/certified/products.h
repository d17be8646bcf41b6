// Matrix products over lanes that are output columns: C[m, n] = Σ_k A[m, k]·B[k, n], k ascending, B in packed panels.
#pragma once

#include "oracles/certified/arithmetic.h"
#include "oracles/certified/work.h"

namespace attest::certified::ATTEST_LANES_NAMESPACE {

template <bool kFirst, class First, class Second>
struct Conditional {
  using Type = First;
};
template <class First, class Second>
struct Conditional<false, First, Second> {
  using Type = Second;
};

/// A[m, k] = hi[m·row + k·step] (+ lo at the same place), and its bound there.
struct Left {
  const double *hi, *lo, *bound;
  int64_t row, step;
};
struct Panels {
  const double* data;
  int64_t stride;  // doubles from one panel to the next
  int64_t count;
};

/// One double, fused. Exact where the spans allow it.
struct InDouble {
  static constexpr int kRows = kLanes == 8 ? 8 : 4, kBoundedRows = kRows / 2;
  struct State {
    V s;
  };
  ATTEST_INLINE void step(State& c, V a, V, V, V b) { c.s = fma(a, b, c.s); }
  ATTEST_INLINE Two total(const State& c) { return {c.s, zero()}; }
  ATTEST_INLINE V bound(const State&) { return zero(); }
};
/// The same over absolute values.
struct OfAbsolutes : InDouble {
  ATTEST_INLINE void step(State& c, V a, V, V, V b) { c.s = fma(absolute(a), absolute(b), c.s); }
};
/// Products that are exact in double, summed with all rounding errors kept in one double.
struct Compensated {
  static constexpr int kRows = kLanes == 8 ? 4 : 2;
  struct State {
    V s, c;
  };
  ATTEST_INLINE void step(State& c, V a, V, V, V b) {
    const Two t = two_sum(c.s, a * b);
    c = {t.h, c.c + t.l};
  }
  ATTEST_INLINE Two total(const State& c) { return two_sum(c.s, c.c); }
  ATTEST_INLINE V bound(const State&) { return zero(); }
};
/// A is a pair.
struct InPairs {
  static constexpr int kRows = kLanes == 8 ? 4 : 2, kBoundedRows = kRows;
  using State = Compensated::State;
  ATTEST_INLINE void step(State& c, V a, V al, V, V b) {
#ifdef ATTEST_BREAK_CONTRACTION
    const V s = fma(a, b, c.s), shadow = s - c.s;
    const Two p = two_product(a, b), t = {s, (c.s - (s - shadow)) + fma(a, b, -shadow)};
#else
    const Two p = two_product(a, b), t = two_sum(c.s, p.h);
#endif
#ifdef ATTEST_BREAK_COMPENSATION
    c = {t.h, fma(al, b, c.c + p.l)};
#else
    c = {t.h, fma(al, b, c.c + (t.l + p.l))};
#endif
  }
  ATTEST_INLINE Two total(const State& c) { return {c.s, c.c}; }  // not normalised: |l| may exceed u|h|
  ATTEST_INLINE V bound(const State&) { return zero(); }
};

/// Sum, and beside it Σ bound·|B|, which share what they load. kOwn: A is its own bound.
template <class Sum, bool kOwn>
struct Bounded {
  static constexpr int kRows = Sum::kBoundedRows;
  struct State {
    typename Sum::State sum;
    V bound;
  };
  ATTEST_INLINE void step(State& c, V a, V al, V bound, V b) {
    Sum::step(c.sum, a, al, bound, b);
    c.bound = fma(kOwn ? a : bound, absolute(b), c.bound);
  }
  ATTEST_INLINE Two total(const State& c) { return Sum::total(c.sum); }
  ATTEST_INLINE V bound(const State& c) { return c.bound; }
};

/// emit(m, column, Two total, V bound) for kRows × 16 outputs at a time; rows [begin, end), a multiple of kRows; k in [0, depth).
template <class Op, class Emit>
ATTEST_INLINE void multiply(Left a, int64_t begin, int64_t end, Panels b, int64_t depth, const Emit& emit) {
  constexpr int kRows = Op::kRows, kVectors = 2, kColumns = kVectors * kLanes;
  for (int64_t column = 0; column < b.count * kPanel; column += kColumns) {
    const double* panel = b.data + column / kPanel * b.stride + column % kPanel;
    for (int64_t m = begin; m < end; m += kRows) {
      typename Op::State state[kRows][kVectors] = {};
      const double *hi = a.hi + m * a.row, *lo = a.lo + m * a.row, *bounds = a.bound + m * a.row;
      for (int64_t k = 0; k < depth; ++k) {
        const V right[kVectors] = {load(panel + k * kPanel), load(panel + k * kPanel + kLanes)};
#pragma GCC unroll 8
        for (int i = 0; i < kRows; ++i) {
          const int64_t at = i * a.row + k * a.step;
          const V left = all(hi[at]), low = all(lo[at]), bound = all(bounds[at]);
          Op::step(state[i][0], left, low, bound, right[0]);
          Op::step(state[i][1], left, low, bound, right[1]);
        }
      }
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i)
        for (int n = 0; n < kVectors; ++n) emit(m + i, column + n * kLanes, Op::total(state[i][n]), Op::bound(state[i][n]));
    }
  }
}

/// The product whose left side an arithmetic keeps, with its bound if it has any.
template <class Arithmetic>
using SumOf = typename Conditional<Arithmetic::kPair, InPairs, InDouble>::Type;
template <class Arithmetic, bool kOwn>
using ProductOf = typename Conditional<Arithmetic::kBounds, Bounded<SumOf<Arithmetic>, kOwn>, SumOf<Arithmetic>>::Type;

/// C[m, n] += x, the sum of one more block of terms.
template <class Arithmetic>
ATTEST_INLINE void add_block(double* hi, double* lo, int64_t at, Two x) {
  if constexpr (Arithmetic::kPair) {
    const Two s = two_sum(load(hi + at), x.h);
    store(hi + at, s.h);
    store(lo + at, load(lo + at) + (s.l + x.l));
  } else {
    store(hi + at, load(hi + at) + x.h);
  }
}

/// Error of such a two-level sum, relative to Σ|A||B|: `blocks` sums of at most `depth` products each.
template <class Arithmetic>
inline double sum_error(int64_t depth, int64_t blocks) {
  const double k = static_cast<double>(depth), n = static_cast<double>(blocks);
  if constexpr (Arithmetic::kPair) return 1.01 * kU * kU * ((2 * k + 1) * (k + 2) + (n + 1) * (n + k + 2));
  return 1.01 * kU * (k + n);
}

}  // namespace attest::certified::ATTEST_LANES_NAMESPACE
