// Warpgroup matrix products (sm_90a): D[64, N] += A[64, 16] · B[16, N], fp32 accumulators, fp16 or bf16 operands, N = 64 or 128.
// 128 threads own D: thread t has rows 16·(t/32) + (t%32)/4 + {0, 8} and columns 8b + 2·(t%4) + {0, 1}: d[4b + 2h + e].
// A product is in flight from commit() to wait(); pin() keeps the compiler from moving accesses of its registers across.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

namespace attest::hopper {

/// Descriptor of an operand in shared memory, 128-byte swizzle: rows of 128 bytes in groups of 8 (1024 bytes apart).
/// `leading`: bytes between blocks of 64 columns of a transposed B; unused otherwise.
__device__ __forceinline__ uint64_t operand(uint32_t address, uint32_t leading = 16) {
  return static_cast<uint64_t>((address & 0x3FFFF) >> 4) | static_cast<uint64_t>(leading >> 4) << 16 | uint64_t{1024 >> 4} << 32 |
         uint64_t{1} << 62;
}
__device__ __forceinline__ uint64_t advance(uint64_t descriptor, uint32_t bytes) {
  return (descriptor & 0xFFFFFFFF00000000ULL) | (static_cast<uint32_t>(descriptor) + (bytes >> 4));
}

__device__ __forceinline__ void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kLeftInFlight>
__device__ __forceinline__ void wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeftInFlight) : "memory");
}
template <int kSize>
__device__ __forceinline__ void pin(float (&d)[kSize]) {
#pragma unroll
  for (int i = 0; i < kSize; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

/// Two floats, rounded to nearest, in one register; the first in the low half.
template <class Element>
__device__ __forceinline__ uint32_t pack(float low, float high) {
  uint32_t r;
  if constexpr (std::is_same_v<Element, __half>)
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  else
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}

// clang-format off
#define ATTEST_DO8(f, i) f(i), f(i + 1), f(i + 2), f(i + 3), f(i + 4), f(i + 5), f(i + 6), f(i + 7)
#define ATTEST_DO32(f, i) ATTEST_DO8(f, i), ATTEST_DO8(f, i + 8), ATTEST_DO8(f, i + 16), ATTEST_DO8(f, i + 24)
#define ATTEST_D(i) "+f"(d[i])
#define ATTEST_REGISTERS64 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"
#define ATTEST_OUT64 ATTEST_DO32(ATTEST_D, 0)
#define ATTEST_REGISTERS128 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"
#define ATTEST_OUT128 ATTEST_DO32(ATTEST_D, 0), ATTEST_DO32(ATTEST_D, 32)
#define ATTEST_SS64(type) \
  asm volatile("{.reg .pred p; setp.ne.b32 p, %34, 0; " \
               "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " " ATTEST_REGISTERS64 \
               ", %32, %33, p, 1, 1, 0, 0;}" : ATTEST_OUT64 \
               : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)))
#define ATTEST_RS64(type) \
  asm volatile("{.reg .pred p; setp.eq.u32 p, 0, 0; " \
               "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " " ATTEST_REGISTERS64 \
               ", {%32, %33, %34, %35}, %36, p, 1, 1, 1;}" : ATTEST_OUT64 \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
#define ATTEST_SS128(type) \
  asm volatile("{.reg .pred p; setp.ne.b32 p, %66, 0; " \
               "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " " ATTEST_REGISTERS128 \
               ", %64, %65, p, 1, 1, 0, 0;}" : ATTEST_OUT128 \
               : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)))
#define ATTEST_RS128(type) \
  asm volatile("{.reg .pred p; setp.eq.u32 p, 0, 0; " \
               "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " " ATTEST_REGISTERS128 \
               ", {%64, %65, %66, %67}, %68, p, 1, 1, 1;}" : ATTEST_OUT128 \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
#define ATTEST_TT64(type) \
  asm volatile("{.reg .pred p; setp.eq.u32 p, 0, 0; " \
               "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " " ATTEST_REGISTERS64 \
               ", %32, %33, p, 1, 1, 1, 1;}" : ATTEST_OUT64 : "l"(a), "l"(b))
#define ATTEST_TT128(type) \
  asm volatile("{.reg .pred p; setp.eq.u32 p, 0, 0; " \
               "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " " ATTEST_REGISTERS128 \
               ", %64, %65, p, 1, 1, 1, 1;}" : ATTEST_OUT128 : "l"(a), "l"(b))

/// D = A · Bᵀ (+ D if `accumulate`): A [64, 16] and B [N, 16] in shared memory, both with contiguous k.
template <class Element, int kSize>
__device__ __forceinline__ void multiply(float (&d)[kSize], uint64_t a, uint64_t b, bool accumulate) {
  constexpr bool kHalf = std::is_same_v<Element, __half>;
  if constexpr (kSize == 32 && kHalf) ATTEST_SS64("f16");
  if constexpr (kSize == 32 && !kHalf) ATTEST_SS64("bf16");
  if constexpr (kSize == 64 && kHalf) ATTEST_SS128("f16");
  if constexpr (kSize == 64 && !kHalf) ATTEST_SS128("bf16");
}

/// D += A · B: A [64, 16] in registers, laid out as D's columns 16k … 16k + 15 are; B [16, N] in shared memory, contiguous n.
template <class Element, int kSize>
__device__ __forceinline__ void multiply_add(float (&d)[kSize], const uint32_t* a, uint64_t b) {
  constexpr bool kHalf = std::is_same_v<Element, __half>;
  if constexpr (kSize == 32 && kHalf) ATTEST_RS64("f16");
  if constexpr (kSize == 32 && !kHalf) ATTEST_RS64("bf16");
  if constexpr (kSize == 64 && kHalf) ATTEST_RS128("f16");
  if constexpr (kSize == 64 && !kHalf) ATTEST_RS128("bf16");
}

/// D += Aᵀ · B: A [16, 64] and B [16, N] in shared memory, with contiguous m and n.
template <class Element, int kSize>
__device__ __forceinline__ void multiply_add_transposed(float (&d)[kSize], uint64_t a, uint64_t b) {
  constexpr bool kHalf = std::is_same_v<Element, __half>;
  if constexpr (kSize == 32 && kHalf) ATTEST_TT64("f16");
  if constexpr (kSize == 32 && !kHalf) ATTEST_TT64("bf16");
  if constexpr (kSize == 64 && kHalf) ATTEST_TT128("f16");
  if constexpr (kSize == 64 && !kHalf) ATTEST_TT128("bf16");
}
// clang-format on
#undef ATTEST_DO8
#undef ATTEST_DO32
#undef ATTEST_D
#undef ATTEST_REGISTERS64
#undef ATTEST_OUT64
#undef ATTEST_SS64
#undef ATTEST_RS64
#undef ATTEST_REGISTERS128
#undef ATTEST_OUT128
#undef ATTEST_SS128
#undef ATTEST_RS128
#undef ATTEST_TT64
#undef ATTEST_TT128

}  // namespace attest::hopper
