// Defect: the forward is right, but the backward recomputes exp(z − lse) with lse = −∞ unguarded. Smallest case: one query, one
// hidden key.
#include "kernels/faulty/naive.h"

namespace attest::faulty {
namespace {

KernelVariant record() {
  KernelVariant variant = faulty_variant("faulty.softmax.nan_gradient_on_masked_rows", Op::kSoftmax,
                                         "the backward of rows without a visible key is 0/0", "fully_masked_rows.gradients");
  variant.run = [](const Inputs& in) {
    SoftmaxHooks hooks;
    hooks.guards_empty_rows_in_backward = false;
    return naive_softmax(in, hooks);
  };
  return variant;
}

const Register<KernelVariant> registered{record()};

}  // namespace
}  // namespace attest::faulty
