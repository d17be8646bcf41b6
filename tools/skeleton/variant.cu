// softmax.cuda.NAME: copy this file to kernels/softmax/, rename, put your kernel in.
// What it is: softmax attention, forward only, bf16, one thread a query, two passes over the keys; contiguous tensors.
// What is unusual: no Torch here, so it compiles fast and can be lifted out whole: pointers, sizes and a stream come in, an
// error code goes out.
// What it promises: out and lse of a query are owned by one thread, sums run over ascending keys: the same bits every time.
//
// Its .cc is variant.cc with a run() that declares these two, fills the struct from the tensors' const_data_ptr(),
// calls launch_softmax_name on the current stream and throws LaunchError unless it returns cudaSuccess.
// Call it cuda_NAME.cc: such files are left out where there is no nvcc. kernels/softmax/cuda_fixed_order.cc is a real one.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace attest {

struct SoftmaxNameParams {
  const __nv_bfloat16 *q, *k, *v;  // [B, Hq, Sq, D], [B, Hkv, Skv, D], [B, Hkv, Skv, Dv]
  const bool* keep;                // [B, Skv], or null
  __nv_bfloat16* out;              // [B, Hq, Sq, Dv]
  float* lse;                      // [B, Hq, Sq]
  int64_t batch, num_heads_q, num_heads_kv, seqlen_q, seqlen_kv, head_dim, head_dim_v;
  float softmax_scale;
  bool causal;
  cudaStream_t stream;
};

namespace {

constexpr int kMaxHeadDimV = 256;
constexpr int kThreads = 64;

__device__ float logit(const SoftmaxNameParams& p, const __nv_bfloat16* q, const __nv_bfloat16* k) {
  float dot = 0;
  for (int64_t d = 0; d < p.head_dim; ++d) dot += __bfloat162float(q[d]) * __bfloat162float(k[d]);
  return p.softmax_scale * dot;
}

__global__ void softmax_forward(SoftmaxNameParams p) {
  const int64_t row = blockIdx.x * int64_t{kThreads} + threadIdx.x;  // of [B, Hq, Sq]
  if (row >= p.batch * p.num_heads_q * p.seqlen_q) return;
  const int64_t query = row % p.seqlen_q, head = row / p.seqlen_q % p.num_heads_q, b = row / p.seqlen_q / p.num_heads_q;
  const int64_t first_key = (b * p.num_heads_kv + head / (p.num_heads_q / p.num_heads_kv)) * p.seqlen_kv;
  const int64_t end = p.causal ? min(p.seqlen_kv, p.seqlen_kv - p.seqlen_q + query + 1) : p.seqlen_kv;
  const __nv_bfloat16* q = p.q + row * p.head_dim;
  const auto visible = [&](int64_t key) { return p.keep == nullptr || p.keep[b * p.seqlen_kv + key]; };

  float largest = -INFINITY;
  for (int64_t key = 0; key < end; ++key)
    if (visible(key)) largest = fmaxf(largest, logit(p, q, p.k + (first_key + key) * p.head_dim));
  float sum = 0, out[kMaxHeadDimV] = {};
  for (int64_t key = 0; key < end; ++key) {
    if (!visible(key)) continue;
    const float weight = expf(logit(p, q, p.k + (first_key + key) * p.head_dim) - largest);
    sum += weight;
    for (int64_t d = 0; d < p.head_dim_v; ++d) out[d] += weight * __bfloat162float(p.v[(first_key + key) * p.head_dim_v + d]);
  }
  for (int64_t d = 0; d < p.head_dim_v; ++d)  // no visible key: out 0, lse -inf
    p.out[row * p.head_dim_v + d] = __float2bfloat16(sum == 0 ? 0.0F : out[d] / sum);
  p.lse[row] = sum == 0 ? -INFINITY : largest + logf(sum);
}

}  // namespace

/// Needs head_dim_v ≤ 256 (the variant's domain says so) and at least one query.
cudaError_t launch_softmax_name(const SoftmaxNameParams& p) {
  const int64_t rows = p.batch * p.num_heads_q * p.seqlen_q;
  softmax_forward<<<static_cast<unsigned>((rows + kThreads - 1) / kThreads), kThreads, 0, p.stream>>>(p);
  return cudaGetLastError();
}

}  // namespace attest
