// Hopper's asynchronous machinery (sm_90a) in C++ words: mbarriers, bulk tensor copies, named barriers, register budgets.
// PTX ISA 8.0 names each instruction; addresses are of shared memory, 32 bits.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace attest::hopper {

__device__ __forceinline__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

/// An mbarrier in shared memory. A phase ends when `arrivals` threads have arrived and the announced bytes have landed.
struct Barrier {
  uint32_t address;

  __device__ __forceinline__ void init(int arrivals) const {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address), "r"(arrivals));
  }
  __device__ __forceinline__ void arrive() const {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address) : "memory");
  }
  __device__ __forceinline__ void arrive_expecting(int bytes) const {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address), "r"(bytes) : "memory");
  }
  /// Waits for the end of the phase of this parity. A fresh barrier is in phase 0; "the phase before" (parity 1) has ended.
  __device__ __forceinline__ void wait(uint32_t parity) const {
    uint32_t done = 0;
    while (!done)
      asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                   : "=r"(done)
                   : "r"(address), "r"(parity)
                   : "memory");
  }
};

/// Makes initialised barriers visible to the copy engine; a __syncthreads() must follow.
__device__ __forceinline__ void publish_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

/// A box of a rank-4 tensor (dim, row, head, batch), from the given corner, to shared memory. Outside the tensor: zeros.
__device__ __forceinline__ void load_box(uint32_t to, const CUtensorMap& map, Barrier full, int dim, int row, int head,
                                         int batch) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(to),
      "l"(&map), "r"(full.address), "r"(dim), "r"(row), "r"(head), "r"(batch)
      : "memory");
}

/// A box of a rank-5 tensor (dim, run, row in the run, head, batch) that begins at row 0 of a run.
__device__ __forceinline__ void load_interleaved(uint32_t to, const CUtensorMap& map, Barrier full, int dim, int run, int head,
                                                 int batch) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(
          to),
      "l"(&map), "r"(full.address), "r"(dim), "r"(run), "r"(0), "r"(head), "r"(batch)
      : "memory");
}

/// `bytes` (a multiple of 16) of global memory (16-byte aligned) to shared memory.
__device__ __forceinline__ void load_bytes(uint32_t to, const void* from, int bytes, Barrier full) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from),
               "r"(bytes), "r"(full.address)
               : "memory");
}

/// Stores four 8 × 8 matrices of 16-bit elements, laid out as accumulators are, one register each. Lane i gives the address of
/// row i % 8 of matrix i / 8.
__device__ __forceinline__ void store_matrices(uint32_t row, const uint32_t* r) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(r[0]), "r"(r[1]), "r"(r[2]),
               "r"(r[3])
               : "memory");
}
/// Makes this thread's stores to shared memory visible to matrix products and bulk copies that are issued after a barrier.
__device__ __forceinline__ void publish_stores() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
/// 16 bytes of global memory to shared memory, both so aligned; of these only the first `bytes` are read, the rest is 0.
__device__ __forceinline__ void copy_16(uint32_t to, const void* from, int bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
/// This thread arrives when its copies so far have landed.
__device__ __forceinline__ void arrive_after_copies(Barrier barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(barrier.address) : "memory");
}
/// Waits for all copy_16 of this thread.
__device__ __forceinline__ void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

/// Named barriers 1 … 15 of a block: `threads` counts those that sync and those that only arrive.
__device__ __forceinline__ void named_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ void named_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

template <int kRegisters>
__device__ __forceinline__ void give_up_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

/// *to = {x, y}, without a branch, around which the compiler would serialise matrix products in flight.
__device__ __forceinline__ void store_if(bool wanted, float* to, float x, float y) {
  asm volatile("{.reg .pred p; setp.ne.b32 p, %0, 0; @p st.global.v2.f32 [%1], {%2, %3};}" ::"r"(static_cast<int>(wanted)), "l"(to),
               "f"(x), "f"(y)
               : "memory");
}

/// Programmatic dependent launch: lets the next kernel of the stream start beside this one, and there waits until this one has
/// ended and all that it wrote can be read. Both do nothing where kernels were launched one after the other.
__device__ __forceinline__ void launch_dependents() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
__device__ __forceinline__ void wait_for_kernel_before() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

/// 2^x and log2 x by the special-function unit; subnormals count as 0. ex2 within 2 ulp, exact at 0 and −∞.
__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float log2_fast(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace attest::hopper
