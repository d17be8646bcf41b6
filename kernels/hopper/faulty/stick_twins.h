// The twins of the stick-breaking kernels, each with one defect in the real code (fused_defects.h), for bf16 and head dims up to 64. Like
// stick::forward, then stick::backward where p asks for gradients.
#pragma once

#include "kernels/hopper/stick.h"

namespace attest::stick::faulty {

void one_minus_beta(const AttentionParams& p, void* saved, void* workspace);
void remainder_dropped(const AttentionParams& p, void* saved, void* workspace);
void scan_from_far_end(const AttentionParams& p, void* saved, void* workspace);
void snapshot_of_other_tile(const AttentionParams& p, void* saved, void* workspace);
void snapshots_never_written(const AttentionParams& p, void* saved, void* workspace);
void stop_on_threshold(const AttentionParams& p, void* saved, void* workspace);
void stop_one_tile_early(const AttentionParams& p, void* saved, void* workspace);
void suffix_with_key_itself(const AttentionParams& p, void* saved, void* workspace);
void sum_in_16_bits(const AttentionParams& p, void* saved, void* workspace);
void total_minus_near(const AttentionParams& p, void* saved, void* workspace);

}  // namespace attest::stick::faulty
