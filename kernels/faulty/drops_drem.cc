// Defect: the gradient that arrives for rem is dropped. Smallest case: one query, one key, drem.
#include "kernels/faulty/naive.h"

namespace attest::faulty {
namespace {

KernelVariant record() {
  KernelVariant variant = faulty_variant("faulty.stickbreaking.drops_drem", Op::kStickBreaking, "the gradient of rem is ignored",
                                         "agrees_with_oracle.gradients");
  variant.run = [](const Inputs& in) { return naive_stickbreaking(in, {.drops_drem = true}); };
  return variant;
}

const Register<KernelVariant> registered{record()};

}  // namespace
}  // namespace attest::faulty
