// The twins of the fused kernels, each with one defect in the real code (fused_defects.h), for bf16 and head dims up to 64. Like
// fused::forward, then fused::backward where p asks for gradients.
#pragma once

#include "kernels/hopper/fused.h"

namespace attest::fused::faulty {

void dominant_ignored(const AttentionParams& p, int32_t* dominant, void* workspace);
void empty_tile_unguarded(const AttentionParams& p, int32_t* dominant, void* workspace);
void neighbours_reference(const AttentionParams& p, int32_t* dominant, void* workspace);
void rescale_by_one_row(const AttentionParams& p, int32_t* dominant, void* workspace);
void rescale_of_tile_before(const AttentionParams& p, int32_t* dominant, void* workspace);
void segments_by_batch(const AttentionParams& p, int32_t* dominant, void* workspace);
void sum_not_normalised(const AttentionParams& p, int32_t* dominant, void* workspace);
void tail_weights(const AttentionParams& p, int32_t* dominant, void* workspace);
void tiles_by_block(const AttentionParams& p, int32_t* dominant, void* workspace);
void weights_in_8_bits(const AttentionParams& p, int32_t* dominant, void* workspace);

}  // namespace attest::fused::faulty
