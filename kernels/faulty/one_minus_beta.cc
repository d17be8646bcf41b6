// Defect: 1 − β is computed by subtraction and dz as a − β(total − nearer), the published form: once |z| passes 17 the difference
// is zero where the gradient is not. Smallest case: one or two queries, one key.
#include "kernels/faulty/naive.h"

namespace attest::faulty {
namespace {

KernelVariant record() {
  KernelVariant variant = faulty_variant("faulty.stickbreaking.one_minus_beta", Op::kStickBreaking,
                                         "1 − β by subtraction, total − nearer in the backward", "gradients_at_saturation");
  variant.run = [](const Inputs& in) { return naive_stickbreaking(in, {.one_minus_beta = true}); };
  return variant;
}

const Register<KernelVariant> registered{record()};

}  // namespace
}  // namespace attest::faulty
