// Operands in shared memory, and products with them. A slab is 64 rows × 64 columns of 16-bit elements, rows of 128 bytes whose
// 16-byte pieces are swizzled by the row's number, so that ldmatrix meets no bank twice. Rows and columns past the end, and rows
// of keys that are not kept, are zeros: what lies there reaches no sum.
#pragma once

#include "kernels/ampere/problem.h"
#include "kernels/hopper/mma.cuh"

namespace attest::portable {

constexpr int kStages = 4;

__device__ __forceinline__ uint32_t in_slab(int row, int piece) { return row * 128 + ((piece ^ row % 8) << 4); }

/// Which row of a tile lies at `position`: in order, or (kRun > 1) as the accumulators of stick-breaking want them: in every
/// 8·kRun rows, row kRun·r + b at position 8b + r.
template <int kRun>
__device__ __forceinline__ int row_at(int position) {
  if constexpr (kRun == 1) return position;
  return position / (8 * kRun) * 8 * kRun + position % 8 * kRun + position / 8 % kRun;
}

/// One head of an operand, from a sequence's first row on.
struct Source {
  const uint16_t* first;
  int64_t row, dim;
  int columns, rows;
  bool aligned;
  const uint32_t* keep;  // null: every row is kept
  int first_bit;
};
__device__ __forceinline__ Source queries_of(const Operand& x, const Sequence& s, int head) {
  return {x.data + s.batch * x.batch + head * x.head + s.q_begin * x.row, x.row, x.dim, x.columns, s.n_q, x.aligned, nullptr, 0};
}
__device__ __forceinline__ Source keys_of(const Operand& x, const Problem& p, const Sequence& s, int kv_head) {
  return {x.data + s.batch * x.batch + kv_head * x.head + s.kv_begin * x.row, x.row, x.dim, x.columns, s.n_kv, x.aligned,
          p.keep == nullptr ? nullptr : p.keep + static_cast<int64_t>(s.batch) * p.keep_words, s.kv_begin};
}
/// 16 bytes from anywhere; elements from `count` on are 0.
__device__ __forceinline__ uint4 gather(const uint16_t* from, int64_t stride, int count) {
  uint32_t pairs[4] = {};
#pragma unroll
  for (int e = 0; e < 8; ++e)
    if (e < count) pairs[e / 2] |= static_cast<uint32_t>(from[e * stride]) << 16 * (e % 2);
  return make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
}

/// By a whole block: rows [first_row, first_row + 64), columns [64·slab, 64·slab + 64). Some threads' copies may be on their way.
template <int kRun>
__device__ __forceinline__ void load_slab(const Source& from, int first_row, int slab, uint32_t to) {
  const int piece = threadIdx.x % 8, column = 64 * slab + 8 * piece, count = min(8, max(0, from.columns - column));
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int position = threadIdx.x / 8 + 16 * i, row = first_row + row_at<kRun>(position), bit = from.first_bit + row;
    const bool exists =
        count > 0 && row < from.rows && (from.keep == nullptr || from.keep[bit / 32] >> bit % 32 & 1);
    const uint16_t* data = from.first + (exists ? row * from.row + column * from.dim : 0);
    const uint32_t address = to + in_slab(position, piece);
    if (from.aligned) {
      hopper::copy_16(address, data, exists ? 2 * count : 0);
      continue;
    }
    const uint4 x = gather(data, from.dim, exists ? count : 0);
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w) : "memory");
  }
}

/// A ring of slabs, of which three are on their way. `load(step, index, to)` brings slab `index` of a step; there are `steps` of
/// `per_step` slabs. Every thread of the block calls next() as often, and has read a slab before it asks for the one after it.
template <class Load>
struct Stream {
  const Load load;
  const uint32_t ring;
  const int steps, per_step;
  int step = 0, index = 0, issued = 0, used = 0;

  __device__ __forceinline__ Stream(Load how, uint32_t memory, int count, int slabs)
      : load(how), ring(memory), steps(count), per_step(slabs) {
#pragma unroll 1
    for (int i = 0; i < kStages - 1; ++i) issue();
  }
  __device__ __forceinline__ void issue() {
    if (step < steps) {
      load(step, index, ring + issued * kSlabBytes);
      if (++index == per_step) index = 0, ++step;
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
    issued = issued + 1 == kStages ? 0 : issued + 1;
  }
  /// Where the next slab lies, once it is there for all threads.
  __device__ __forceinline__ uint32_t next() {
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
    __syncthreads();
    issue();
    const uint32_t slab = ring + used * kSlabBytes;
    used = used + 1 == kStages ? 0 : used + 1;
    return slab;
  }
};

__device__ __forceinline__ int lane() { return threadIdx.x % 32; }
__device__ __forceinline__ int warp_row() { return threadIdx.x / 32 * 16; }

/// d [16, 64] += A · Bᵀ: this warp's 16 rows of slab a (pairs & mask ^ flip), all rows of slab b, 64 columns ascending.
template <class Element>
__device__ __forceinline__ void multiply_slab(float* d, uint32_t a, uint32_t b, uint32_t mask = ~0U, uint32_t flip = 0) {
  const int a_row = warp_row() + lane() % 16, b_row = lane() % 8 + lane() / 16 * 8;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    uint32_t left[4], right[4];
    hopper::load_matrices(left, a + in_slab(a_row, 2 * k + lane() / 16));
#pragma unroll
    for (int i = 0; i < 4; ++i) left[i] = left[i] & mask ^ flip;
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
      hopper::load_matrices(right, b + in_slab(b_row + 16 * pair, 2 * k + lane() / 8 % 2));
      hopper::warp_multiply_add<Element>(d + 8 * pair, left, right[0], right[1]);
      hopper::warp_multiply_add<Element>(d + 8 * pair + 4, left, right[2], right[3]);
    }
  }
}

/// d [16, 64] += A · B for one k16: A in registers, B the slab's rows 16k … 16k + 15.
template <class Element>
__device__ __forceinline__ void accumulate_rows(float* d, const uint32_t (&a)[4], uint32_t b, int k) {
#pragma unroll
  for (int pair = 0; pair < 4; ++pair) {
    uint32_t right[4];
    hopper::load_transposed(right, b + in_slab(16 * k + lane() % 16, 2 * pair + lane() / 16));
    hopper::warp_multiply_add<Element>(d + 8 * pair, a, right[0], right[1]);
    hopper::warp_multiply_add<Element>(d + 8 * pair + 4, a, right[2], right[3]);
  }
}
/// d [16, 64] += A · B over the slab's 64 rows, taken 16 at a time in the order k ^ kOrder; A: registers 4k … 4k + 3 for rows 16k ….
template <class Element, int kOrder = 0>
__device__ __forceinline__ void accumulate_slab(float* d, const uint32_t* a, uint32_t b) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int k = i ^ kOrder;
    const uint32_t left[4] = {a[4 * k], a[4 * k + 1], a[4 * k + 2], a[4 * k + 3]};
    accumulate_rows<Element>(d, left, b, k);
  }
}

extern __shared__ __align__(128) char shared_memory[];
__device__ __forceinline__ uint32_t shared_slabs() { return hopper::shared_address(shared_memory); }

}  // namespace attest::portable
