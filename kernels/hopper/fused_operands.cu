// Copies of operands, the key-padding mask as bits, tensor maps. See fused_operands.h.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/device/launch.h"
#include "kernels/hopper/fused_mask.cuh"
#include "kernels/hopper/fused_operands.h"

namespace attest::fused {
namespace {

constexpr int kThreads = kMaskThreads;

struct Copy {
  const uint16_t* from;
  uint16_t* to;                   // contiguous, rows of `pitch` elements
  int64_t batch, head, row, dim;  // strides of `from`
  int64_t heads, rows, rows_from, head_dim, pitch, count;  // rows of `to`, of `from`; count: pieces of 8 elements
  const uint8_t* keep;  // null: every row is kept
  int64_t keep_batch, keep_key;
  uint16_t mask, flip;  // element := element & mask ^ flip
};

/// One thread copies 8 elements; rows not kept and columns past head_dim become 0.
__global__ void __launch_bounds__(kThreads) copy_rows(const __grid_constant__ Copy c) {
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < c.count; i += gridDim.x * int64_t{kThreads}) {
    const int64_t pieces = c.pitch / 8, column = i % pieces * 8, row_number = i / pieces;
    const int64_t row = row_number % c.rows, head = row_number / c.rows % c.heads, batch = row_number / c.rows / c.heads;
    const bool kept = row < c.rows_from && (c.keep == nullptr || c.keep[batch * c.keep_batch + row * c.keep_key] != 0);
    const uint16_t* from = c.from + batch * c.batch + head * c.head + row * c.row + column * c.dim;
    __align__(16) uint16_t x[8];
    const bool whole = c.dim == 1 && column + 8 <= c.head_dim && reinterpret_cast<uintptr_t>(from) % 16 == 0;
    if (kept && whole) *reinterpret_cast<uint4*>(x) = *reinterpret_cast<const uint4*>(from);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      if (kept && !whole && column + e < c.head_dim) x[e] = from[e * c.dim];
      x[e] = kept && column + e < c.head_dim ? static_cast<uint16_t>((x[e] & c.mask) ^ c.flip) : uint16_t{0};
    }
    *reinterpret_cast<uint4*>(c.to + row_number * c.pitch + column) = *reinterpret_cast<const uint4*>(x);
  }
}

unsigned blocks_of(int64_t threads) { return grid_of(std::min<int64_t>((threads + kThreads - 1) / kThreads, 132 * 16)); }
cudaStream_t stream_of(const AttentionParams& p) { return static_cast<cudaStream_t>(p.stream); }

bool aligned(const AttentionParams& p, const Matrix& m) {
  const View<const void>& x = m.data;
  const auto ok = [](int64_t size, int64_t stride) { return size == 1 || (stride > 0 && stride % 8 == 0); };
  return reinterpret_cast<uintptr_t>(x.data) % 16 == 0 && (m.head_dim == 1 || x.dim == 1) && ok(m.rows, x.row) &&
         ok(m.heads, x.head) && ok(p.batch, x.batch);
}

struct Change {
  bool zero_hidden = false;
  float sign = 1.0F;
  int64_t rows_multiple = 1;
};

View<const void> copied(const AttentionParams& p, const Matrix& m, Change change, Arena& arena) {
  const View<const void>& x = m.data;
  const int64_t pitch = (m.head_dim + 7) / 8 * 8, rows = (m.rows + change.rows_multiple - 1) / change.rows_multiple *
                                                         change.rows_multiple;
  const int64_t elements = p.batch * m.heads * rows * pitch;
  auto* to = arena.take<uint16_t>(elements);
  if (to != nullptr) {
    const Copy copy{static_cast<const uint16_t*>(x.data),
                    to,
                    x.batch,
                    x.head,
                    x.row,
                    x.dim,
                    m.heads,
                    rows,
                    m.rows,
                    m.head_dim,
                    pitch,
                    elements / 8,
                    change.zero_hidden ? p.keep : nullptr,
                    p.keep_batch,
                    p.keep_key,
                    static_cast<uint16_t>(change.sign == 0.0F ? 0 : 0xFFFF),
                    static_cast<uint16_t>(change.sign < 0.0F ? 0x8000 : 0)};
    copy_rows<<<blocks_of(copy.count), kThreads, 0, stream_of(p)>>>(copy);
    check_launch("copy_rows");
  }
  return {to, m.heads * rows * pitch, rows * pitch, pitch, 1};
}

View<const void> usable(const AttentionParams& p, const Matrix& m, Change change, Arena& arena) {
  const bool as_it_is =
      aligned(p, m) && !change.zero_hidden && change.sign > 0.0F && m.rows % change.rows_multiple == 0;
  return as_it_is ? m.data : copied(p, m, change, arena);
}

using Encode = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*,
                            const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                            CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

/// The driver's function, found at run time: nothing links libcuda.
Encode encode_function() {
  static const Encode encode = [] {
    void* f = nullptr;
    cudaDriverEntryPointQueryResult found{};
    check_cuda(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &f, 12000, cudaEnableDefault, &found),
               "cuTensorMapEncodeTiled");
    return reinterpret_cast<Encode>(f);
  }();
  return encode;
}

}  // namespace

Operands prepare_operands(const AttentionParams& p, Arena& arena, int64_t key_rows) {
  const bool padded = p.keep != nullptr;
  const float sign = p.softmax_scale > 0.0F ? 1.0F : p.softmax_scale < 0.0F ? -1.0F : 0.0F;
  const Change of_keys{.zero_hidden = padded, .rows_multiple = key_rows};
  Operands o;
  o.q = usable(p, {p.q, p.num_heads_q, p.seqlen_q, p.head_dim}, {.sign = sign}, arena);
  o.k = usable(p, {p.k, p.num_heads_kv, p.seqlen_kv, p.head_dim}, of_keys, arena);
  o.v = usable(p, {p.v, p.num_heads_kv, p.seqlen_kv, p.head_dim_v}, of_keys, arena);
  if (p.backward()) o.dout = usable(p, {p.dout, p.num_heads_q, p.seqlen_q, p.head_dim_v}, {}, arena);
  if (!padded) return o;
  o.keep_words = static_cast<int>((p.seqlen_kv + 127) / 128 * 4);
  const int64_t count = p.batch * o.keep_words;
  auto* bits = arena.take<uint32_t>(count);
  o.keep = bits;
  if (bits == nullptr) return o;
  pack_mask<<<blocks_of(count), kThreads, 0, stream_of(p)>>>(p.keep, p.keep_batch, p.keep_key, p.seqlen_kv, o.keep_words, count,
                                                             bits);
  check_launch("pack_mask");
  return o;
}

namespace {

template <int kRank>
struct Boxes {
  cuuint64_t sizes[kRank], strides[kRank - 1];  // in elements; the first dimension has stride 1
  cuuint32_t box[kRank];
  cuuint32_t step = 1;  // between the box's rows
};

template <int kRank>
CUtensorMap encode(const AttentionParams& p, const View<const void>& x, const Boxes<kRank>& b, CUtensorMapL2promotion pieces) {
  const bool half = p.type == ElementType::kFloat16;
  cuuint64_t strides[kRank - 1];
  cuuint32_t steps[kRank];
  for (int i = 0; i < kRank; ++i) steps[i] = i == 1 ? b.step : 1;
  for (int i = 0; i + 1 < kRank; ++i) strides[i] = b.sizes[i + 1] == 1 ? 16 : 2 * b.strides[i];
  CUtensorMap map;
  const CUresult result =
      encode_function()(&map, half ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, kRank,
                        const_cast<void*>(x.data), b.sizes, strides, b.box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                        CU_TENSOR_MAP_SWIZZLE_128B, pieces, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) throw LaunchError("cuTensorMapEncodeTiled: error " + std::to_string(static_cast<int>(result)));
  return map;
}

cuuint64_t size_of(int64_t n) { return static_cast<cuuint64_t>(n); }

}  // namespace

CUtensorMap tensor_map(const AttentionParams& p, const Matrix& x, int box_rows, CUtensorMapL2promotion pieces) {
  const View<const void>& d = x.data;
  return encode<4>(p, d,
                   {{size_of(x.head_dim), size_of(x.rows), size_of(x.heads), size_of(p.batch)},
                    {size_of(d.row), size_of(d.head), size_of(d.batch)},
                    {64, static_cast<cuuint32_t>(box_rows), 1, 1}},
                   pieces);
}

CUtensorMap interleaved_map(const AttentionParams& p, const Matrix& x, int run) {
  const View<const void>& d = x.data;
  return encode<5>(p, d,
                   {{size_of(x.head_dim), size_of((x.rows + run - 1) / run), size_of(run), size_of(x.heads), size_of(p.batch)},
                    {size_of(run * d.row), size_of(d.row), size_of(d.head), size_of(d.batch)},
                    {64, 8, static_cast<cuuint32_t>(run), 1, 1}},
                   CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
}

CUtensorMap every_fourth_map(const AttentionParams& p, const Matrix& x, int rows) {
  const View<const void>& d = x.data;
  return encode<4>(p, d,
                   {{size_of(x.head_dim), size_of(x.rows), size_of(x.heads), size_of(p.batch)},
                    {size_of(d.row), size_of(d.head), size_of(d.batch)},
                    {64, static_cast<cuuint32_t>(rows), 1, 1},
                    4},
                   CU_TENSOR_MAP_L2_PROMOTION_L2_128B);
}

}  // namespace attest::fused
