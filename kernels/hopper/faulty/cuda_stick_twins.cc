// The records of the twins: faulty.stickbreaking.fused_*, each a defect in the real code of the stick-breaking kernels. A GPU is needed to
// run them; STICKBREAKING.md has what caught them.
#include "kernels/hopper/cuda_stick_fused.h"
#include "kernels/hopper/faulty/stick_twins.h"

namespace attest {
namespace {

struct Twin {
  const char *name, *summary, *caught_by;
  AttendSticks* attend;
};

constexpr Twin kTwins[] = {
    {"faulty.stickbreaking.fused_one_minus_beta", "1 − β is a difference",
     "agrees_with_oracle.gradients", stick::faulty::one_minus_beta},
    {"faulty.stickbreaking.fused_remainder_dropped", "the gradient of the remainder is left out",
     "agrees_with_oracle.gradients", stick::faulty::remainder_dropped},
    {"faulty.stickbreaking.fused_scan_from_far_end", "a lane's keys get what farther lanes leave",
     "agrees_with_oracle.forward", stick::faulty::scan_from_far_end},
    {"faulty.stickbreaking.fused_snapshot_of_other_tile", "sticks of a tile's halves are exchanged",
     "agrees_with_oracle.gradients", stick::faulty::snapshot_of_other_tile},
    {"faulty.stickbreaking.fused_snapshots_never_written", "sticks that nobody saved are read",
     "agrees_with_oracle.gradients", stick::faulty::snapshots_never_written},
    {"faulty.stickbreaking.fused_stop_on_threshold", "a stick of 2^-24 counts as used up",
     "agrees_with_oracle.forward", stick::faulty::stop_on_threshold},
    {"faulty.stickbreaking.fused_stop_one_tile_early", "the farthest tile may be left out",
     "agrees_with_oracle.forward", stick::faulty::stop_one_tile_early},
    {"faulty.stickbreaking.fused_suffix_with_key_itself", "a key counts among the farther ones",
     "agrees_with_oracle.gradients", stick::faulty::suffix_with_key_itself},
    {"faulty.stickbreaking.fused_sum_in_16_bits", "what farther keys are worth is summed in 16 bits",
     "agrees_with_oracle.gradients", stick::faulty::sum_in_16_bits},
    {"faulty.stickbreaking.fused_total_minus_near", "what farther keys are worth is total − near",
     "agrees_with_oracle.gradients", stick::faulty::total_minus_near},
};

KernelVariant record(const Twin& twin) {
  KernelVariant variant = stick_variant(twin.name, twin.summary, twin.attend);
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
