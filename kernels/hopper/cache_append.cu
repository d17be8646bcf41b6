// Appending rows to a KV cache whose lengths lie on the device. The blocks of a batch element copy its rows, 16 bytes at a time where
// alignment allows; the one block of a small element also moves its length on, else a second kernel does, once all have read it.
#include <algorithm>

#include "kernels/device/launch.h"
#include "kernels/hopper/stick_decode.h"

namespace attest::stick {
namespace {

constexpr int kThreads = 256, kPiecesOfBlock = 8 * kThreads;  // a piece: 8 elements of a row

/// Pieces of a row of k and of v.
struct Pieces {
  int64_t of_key, of_value;
  __host__ __device__ explicit Pieces(const AppendParams& p) : of_key((p.head_dim + 7) / 8), of_value((p.head_dim_v + 7) / 8) {}
  __host__ __device__ int64_t of_row() const { return of_key + of_value; }
};

/// Where the rows of batch element b go; −1 where they don't fit.
__device__ int64_t first_row(const AppendParams& p, int64_t b) {
  const int64_t length = p.seqlens_kv[b];
  return length < 0 || length + p.rows > p.capacity ? -1 : length;
}

__device__ void copy_piece(const uint16_t* from, int64_t from_step, uint16_t* to, int64_t to_step, int64_t count) {
  const bool whole = count >= 8 && from_step == 1 && to_step == 1 &&
                     (reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to)) % 16 == 0;
  if (whole) *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
  for (int i = 0; !whole && i < 8 && i < count; ++i) to[i * to_step] = from[i * from_step];
}

__device__ void copy_piece(const View<const void>& from, const View<void>& to, int64_t b, int64_t h, int64_t row, int64_t to_row,
                           int64_t column, int64_t columns) {
  copy_piece(static_cast<const uint16_t*>(from.data) + from.at(b, h, row, column), from.dim,
             static_cast<uint16_t*>(to.data) + to.at(b, h, to_row, column), to.dim, columns - column);
}

/// Grid: blocks of an element × batch.
__global__ void __launch_bounds__(kThreads) append_rows(const __grid_constant__ AppendParams p) {
  const int64_t b = blockIdx.y, to = first_row(p, b);
  const Pieces pieces(p);
  const int64_t count = to < 0 ? 0 : p.heads * p.rows * pieces.of_row();
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < count; i += gridDim.x * int64_t{kThreads}) {
    const int64_t piece = i % pieces.of_row(), row = i / pieces.of_row() % p.rows, head = i / pieces.of_row() / p.rows;
    if (piece < pieces.of_key)
      copy_piece(p.k, p.k_cache, b, head, row, to + row, 8 * piece, p.head_dim);
    else
      copy_piece(p.v, p.v_cache, b, head, row, to + row, 8 * (piece - pieces.of_key), p.head_dim_v);
  }
  if (to < 0 && threadIdx.x == 0 && blockIdx.x == 0 && p.errors != nullptr) atomicOr_system(p.errors, kAppendPastCapacity);
  if (gridDim.x > 1) return;
  __syncthreads();  // all threads have read the length
  if (to >= 0 && threadIdx.x == 0) p.seqlens_kv[b] = static_cast<int32_t>(to + p.rows);
}

__global__ void __launch_bounds__(kThreads) advance_lengths(const __grid_constant__ AppendParams p) {
  for (int64_t b = blockIdx.x * int64_t{kThreads} + threadIdx.x; b < p.batch; b += gridDim.x * int64_t{kThreads})
    if (first_row(p, b) >= 0) p.seqlens_kv[b] += static_cast<int32_t>(p.rows);
}

void check(const AppendParams& p) {
  constexpr int64_t kMost = int64_t{1} << 30;
  const auto refuse = [](const std::string& why) { throw LaunchError("append_to_cache: " + why); };
  if (std::min({p.batch, p.heads, p.rows, p.head_dim, p.head_dim_v, p.capacity}) < 1) refuse("every size must be at least 1");
  if (p.batch > 65535) refuse("more than 65535 batch elements");
  if (std::max(p.rows, p.capacity) > kMost) refuse("rows or the capacity exceed 2^30");
  if (p.seqlens_kv == nullptr) refuse("it needs lengths");
}

}  // namespace

void append_to_cache(const AppendParams& p) {
  check(p);
  const CudaDevice device(p.device);
  const auto stream = static_cast<cudaStream_t>(p.stream);
  const int64_t pieces = p.heads * p.rows * Pieces(p).of_row();
  const auto blocks = static_cast<unsigned>(std::clamp<int64_t>((pieces + kPiecesOfBlock - 1) / kPiecesOfBlock, 1, 1024));
  append_rows<<<dim3(blocks, static_cast<unsigned>(p.batch)), kThreads, 0, stream>>>(p);
  check_launch("append_rows");
  if (blocks == 1) return;
  advance_lengths<<<grid_of((p.batch + kThreads - 1) / kThreads), kThreads, 0, stream>>>(p);
  check_launch("advance_lengths");
}

}  // namespace attest::stick
