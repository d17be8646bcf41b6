// Defect: dk and dv sum the query heads of a group in an order that follows from the block's index. Smallest case: two batch elements,
// two query heads on one KV head, one key.
#define ATTEST_DEFECT kHeadsByBlock
#include "kernels/hopper/faulty/twin.h"
#define dkv_kernel_of kernel_of_heads_by_block
#include "kernels/hopper/fused_backward_dkv.cu"

namespace attest::fused::faulty {

void heads_by_block(const AttentionParams& p, int32_t* dominant, void* workspace) {
  attend(p, dominant, workspace, {.dkv = kernel_of_heads_by_block});
}

}  // namespace attest::fused::faulty
