// The six matrix products of fixed-order attention: 6 instantiations of one kernel, one block a tile, one thread an element.
// Nothing but (dims, key, query, head in its group) decides the order of a sum, see fixed_order_products.h.
#include "kernels/device/attention_products.h"
#include "kernels/device/launch.h"
#include "kernels/device/launch_products.h"

namespace attest::fixed_order {
namespace {

template <class Product>
__global__ void __launch_bounds__(kThreads) product_kernel(const __grid_constant__ Product product) {
  __shared__ ProductTile tile;
  DeviceBlock<Sums> block;
  const int64_t tiles = count_tiles(product);
  for (int64_t index = blockIdx.x; index < tiles; index += gridDim.x) run_tile(block, product, tile, index);
}

template <class Product>
void launch(const Product& product, const char* name) {
  const auto stream = static_cast<cudaStream_t>(product.params.stream);
  product_kernel<<<grid_of(count_tiles(product)), kThreads, 0, stream>>>(product);
  check_launch(name);
}

/// `make` is called with a value of the element type.
template <class Make>
void dispatch(const AttentionParams& p, const char* name, Make make) {
  switch (p.type) {
    case ElementType::kFloat16: return launch(make(Float16{}), name);
    case ElementType::kBFloat16: return launch(make(BFloat16{}), name);
    case ElementType::kFloat32: break;
  }
  throw LaunchError(std::string(name) + ": fp32 inputs are not supported");
}

}  // namespace

void launch_logits(const AttentionParams& p) {
  dispatch(p, "fixed_order logits", [&](auto x) { return logits_product<decltype(x)>(p); });
}
void launch_out(const AttentionParams& p) {
  dispatch(p, "fixed_order out", [&](auto x) { return out_product<decltype(x)>(p); });
}
void launch_dweights(const AttentionParams& p) {
  dispatch(p, "fixed_order dweights", [&](auto x) { return dweights_product<decltype(x)>(p); });
}
void launch_dq(const AttentionParams& p) {
  dispatch(p, "fixed_order dq", [&](auto x) { return dq_product<decltype(x)>(p); });
}
void launch_dk(const AttentionParams& p) {
  dispatch(p, "fixed_order dk", [&](auto x) { return dk_product<decltype(x)>(p); });
}
void launch_dv(const AttentionParams& p) {
  dispatch(p, "fixed_order dv", [&](auto x) { return dv_product<decltype(x)>(p); });
}

}  // namespace attest::fixed_order
