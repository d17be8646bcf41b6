// W doubles side by side, W = 4 (AVX2) or 8 (AVX-512). A lane never looks at another: whatever W, a lane computes the same bits.
// Included by the lane kernels only, inside their own namespace: what two of them instantiate must not be merged by the linker.
#pragma once

#include <immintrin.h>

#include <cstdint>

#ifdef __FAST_MATH__
#error "The certified oracles need IEEE arithmetic: compile them without -ffast-math."
#endif
#ifndef ATTEST_LANES_NAMESPACE
#error "Define ATTEST_LANES_NAMESPACE before including the lane kernels."
#endif

#ifndef ATTEST_LANES  // a test sets 8 on a machine of 4
#ifdef __AVX512F__
#define ATTEST_LANES 8
#else
#define ATTEST_LANES 4
#endif
#endif

namespace attest::certified::ATTEST_LANES_NAMESPACE {

inline constexpr int kLanes = ATTEST_LANES;

typedef double V __attribute__((vector_size(8 * kLanes)));
typedef int64_t I __attribute__((vector_size(8 * kLanes)));
typedef double Unaligned __attribute__((vector_size(8 * kLanes), aligned(8), may_alias));

#define ATTEST_INLINE static inline __attribute__((always_inline))

ATTEST_INLINE V all(double x) { return x - V{}; }  // x − 0 is x, whatever its sign
ATTEST_INLINE V load(const double* p) { return *reinterpret_cast<const Unaligned*>(p); }
ATTEST_INLINE void store(double* p, V x) { *reinterpret_cast<Unaligned*>(p) = x; }
ATTEST_INLINE V select(I where, V a, V b) { return where ? a : b; }
ATTEST_INLINE V absolute(V x) { return (V)((I)x & (I{} + INT64_MAX)); }
ATTEST_INLINE V larger(V a, V b) { return select(a > b, a, b); }

/// a·b + c, rounded once.
ATTEST_INLINE V fma(V a, V b, V c) {
#if ATTEST_LANES == 4
  return (V)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined(__AVX512F__)
  return (V)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#else
  V r;
  for (int lane = 0; lane < kLanes; ++lane) r[lane] = __builtin_fma(a[lane], b[lane], c[lane]);
  return r;
#endif
}

/// table[i] in each lane.
ATTEST_INLINE V gather(const double* table, I i) {
#if ATTEST_LANES == 8 && defined(__AVX512F__)
  return (V)_mm512_i64gather_pd((__m512i)i, table, 8);
#else
  V r;
  for (int lane = 0; lane < kLanes; ++lane) r[lane] = table[i[lane]];
  return r;
#endif
}

}  // namespace attest::certified::ATTEST_LANES_NAMESPACE
