// What the working warps of the kernels for few queries share, of both operators: the queries as an operand, a warp's 32 keys times
// them, its columns of the values. Four warps share a tile, by keys for the scores and by columns for the values.
#pragma once

#include "kernels/hopper/fused_decode_producer.cuh"
#include "kernels/hopper/mma.cuh"

namespace attest::fused {

/// Where in a tile (blocks of 64 columns, 128-byte swizzle) the 16 bytes `chunk` of a row lie.
__device__ __forceinline__ uint32_t in_tile(int row, int chunk) {
  return chunk / 8 * kKeyTile * 128 + row * 128 + ((chunk % 8 ^ row % 8) << 4);
}

template <int kHeadDim>
struct DecodeWarp {
  using S = DecodeShape<kHeadDim>;
  const DecodeRing<kHeadDim>& ring;
  const int warp, lane;
  uint32_t query[kHeadDim / 16][4];
  Position<S::kSlots> at;
  uint32_t filled = 0;  // parity of the queries' slot

  __device__ __forceinline__ explicit DecodeWarp(const DecodeRing<kHeadDim>& r)
      : ring(r), warp(__shfl_sync(~0U, threadIdx.x / 32, 0)), lane(threadIdx.x % 32) {}

  /// Where this lane's row of an A operand of 16 × 16 begins, for load_matrices.
  __device__ __forceinline__ uint32_t operand(const char* rows, int pitch) const {
    return hopper::shared_address(rows) + lane % 16 * pitch + lane / 16 * 16;
  }
  /// The queries at `slot`, once they are there; the slot is free after.
  __device__ __forceinline__ void load_query(const char* slot) {
    const uint32_t from = operand(slot, S::kQueryPitch);
#pragma unroll
    for (int k = 0; k < kHeadDim / 16; ++k) hopper::load_matrices(query[k], from + 32 * k);
    release(ring.query_empty());
    filled ^= 1;
  }
  __device__ __forceinline__ void release_tile() {
    release(ring.empty(at.stage));
    at.step();
  }
  __device__ __forceinline__ void meet_warps() const { hopper::named_sync(1, 32 * S::kWarps); }

  /// Scores of 16 queries with 32 keys, those of the tile's rows that lanes give: `row` belongs to matrix lane / 16 of the first two,
  /// row + next to those of the others.
  template <class Element>
  __device__ __forceinline__ void score(float (&s)[16], int row, int next) const {
    clear(s);
#pragma unroll
    for (int k = 0; k < kHeadDim / 16; ++k)
#pragma unroll
      for (int pair = 0; pair < 2; ++pair) {
        uint32_t keys[4];
        hopper::load_matrices(keys, ring.tile(at.stage) + in_tile(row + next * pair, 2 * k + lane / 8 % 2));
        hopper::warp_multiply_add<Element>(s + 8 * pair, query[k], keys[0], keys[1]);
        hopper::warp_multiply_add<Element>(s + 8 * pair + 4, query[k], keys[2], keys[3]);
      }
  }

  /// o += the weights' columns 16k … 16k + 15 times as many values; `value(chunk)`: where 16 bytes of this lane's row of them lie.
  template <class Element, class Value>
  __device__ __forceinline__ void add_values(float (&o)[S::kColumns / 2], const char* weights, int k, Value&& value) const {
    uint32_t weight[4];
    hopper::load_matrices(weight, operand(weights, S::kWeightPitch) + 32 * k);
#pragma unroll
    for (int pair = 0; pair < S::kColumns / 16; ++pair) {
      uint32_t values[4];
      hopper::load_transposed(values, value(warp * S::kColumns / 8 + lane / 16 + 2 * pair));
      hopper::warp_multiply_add<Element>(o + 8 * pair, weight, values[0], values[1]);
      hopper::warp_multiply_add<Element>(o + 8 * pair + 4, weight, values[2], values[3]);
    }
  }

  /// Row h of the thread's two: this warp's columns to `to`, a row of `pitch` floats.
  __device__ __forceinline__ void leave_columns(const float (&o)[S::kColumns / 2], int h, float* to, int pitch) const {
    to += warp * S::kColumns + 2 * (lane % 4);
#pragma unroll
    for (int i = 0; i < S::kColumns / 8; ++i)
      if (warp * S::kColumns + 8 * i < pitch)
        *reinterpret_cast<float2*>(to + 8 * i) = make_float2(o[4 * i + 2 * h], o[4 * i + 2 * h + 1]);
  }
};

}  // namespace attest::fused
