// Matrix products of one warp (sm_80 and later): D[16, 8] += A[16, 16] · B[16, 8], fp32 accumulators, fp16 or bf16 operands.
// Lane t has rows t/4 + {0, 8} of D and columns 2·(t%4) + {0, 1}: d[2h + e]; of A the same rows, columns 8c + 2·(t%4) + {0, 1}
// in a[h + 2c]. Bit for bit the products of wgmma.cuh with the same k.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

namespace attest::hopper {

/// d[0 … 3] += A · B, where B is {low, high}: its rows 0 … 7 and 8 … 15.
template <class Element>
__device__ __forceinline__ void warp_multiply_add(float* d, const uint32_t (&a)[4], uint32_t low, uint32_t high) {
  if constexpr (std::is_same_v<Element, __half>)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(low), "r"(high));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(low), "r"(high));
}

/// Four 8 × 8 matrices of 16-bit elements; lanes 8i … 8i + 7 give the addresses of the rows (16 bytes each) of matrix i. Lane t gets
/// the elements [t/4, 2·(t%4) + {0, 1}] of matrix i in x[i].
__device__ __forceinline__ void load_matrices(uint32_t (&x)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"(address)
               : "memory");
}
/// The same of the transposed matrices.
__device__ __forceinline__ void load_transposed(uint32_t (&x)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"(address)
               : "memory");
}

}  // namespace attest::hopper
