// The records of the twins: faulty.softmax.fused_*, each a defect in the real code of the fused kernels. A GPU is needed to run them;
// README.md has what caught them.
#include "kernels/hopper/cuda_fused.h"
#include "kernels/hopper/faulty/twins.h"

namespace attest {
namespace {

struct Twin {
  const char *name, *summary, *caught_by;
  Attend* attend;
};

constexpr Twin kTwins[] = {
    {"faulty.softmax.fused_dominant_ignored", "no dominant key in the backward",
     "agrees_with_oracle.gradients", fused::faulty::dominant_ignored},
    {"faulty.softmax.fused_empty_tile_unguarded", "−∞ − (−∞) where a row sees no key of a tile",
     "agrees_with_oracle.forward", fused::faulty::empty_tile_unguarded},
    {"faulty.softmax.fused_neighbours_reference", "a row's reference follows its neighbours'",
     "chunked_prefill.forward", fused::faulty::neighbours_reference},
    {"faulty.softmax.fused_rescale_by_one_row", "one row decides for a warp whether to rescale",
     "agrees_with_oracle.forward", fused::faulty::rescale_by_one_row},
    {"faulty.softmax.fused_rescale_of_tile_before", "a tile without a visible key is rescaled as the one before it",
     "agrees_with_oracle.forward", fused::faulty::rescale_of_tile_before},
    {"faulty.softmax.fused_segments_by_batch", "segments are longer where there are several batch elements",
     "batch_size.forward", fused::faulty::segments_by_batch},
    {"faulty.softmax.fused_sum_not_normalised", "the mean of dP is not normalised",
     "agrees_with_oracle.gradients", fused::faulty::sum_not_normalised},
    {"faulty.softmax.fused_tail_weights", "the tail of the last tile has weight in the backward",
     "agrees_with_oracle.gradients", fused::faulty::tail_weights},
    {"faulty.softmax.fused_tiles_by_block", "the order of the tiles follows the block's index",
     "batch_position.forward", fused::faulty::tiles_by_block},
    {"faulty.softmax.fused_weights_in_8_bits", "weights are rounded to 8 bits",
     "agrees_with_oracle.forward", fused::faulty::weights_in_8_bits},
};

KernelVariant record(const Twin& twin) {
  KernelVariant variant = fused_variant(twin.name, twin.summary, twin.attend);
  variant.faulty_caught_by = twin.caught_by;
  variant.domain.dtypes = {Dtype::kBFloat16};
  variant.domain.head_dim = variant.domain.head_dim_v = {1, 64};
  return variant;
}

template <size_t... kIndex>
std::array<Register<KernelVariant>, sizeof...(kIndex)> records(std::index_sequence<kIndex...>) {
  return {Register<KernelVariant>(record(kTwins[kIndex]))...};
}
const auto registered = records(std::make_index_sequence<std::size(kTwins)>());

}  // namespace
}  // namespace attest
