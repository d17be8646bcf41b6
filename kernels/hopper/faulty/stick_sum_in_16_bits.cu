// Defect: in dq what farther keys are worth is rounded to bf16 after each key. Smallest case: one query, two keys.
#define ATTEST_DEFECT kSumIn16Bits
#include "kernels/hopper/faulty/stick_twin.h"
#define dq_kernel_of kernel_of_sum_in_16_bits
#include "kernels/hopper/stick_backward_dq.cu"

namespace attest::stick::faulty {

void sum_in_16_bits(const AttentionParams& p, void* saved, void* workspace) {
  attend(p, saved, workspace, {.dq = kernel_of_sum_in_16_bits});
}

}  // namespace attest::stick::faulty
