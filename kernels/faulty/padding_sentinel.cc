// Defect: hidden keys get the score −1e4 in place of −∞. Where every visible score is lower, or none is visible, their values
// leak out. Smallest case: one query, one hidden key.
#include "kernels/faulty/naive.h"

namespace attest::faulty {
namespace {

KernelVariant record() {
  KernelVariant variant =
      faulty_variant("faulty.softmax.padding_sentinel", Op::kSoftmax, "hidden keys get a finite score", "padding_inert.forward");
  variant.run = [](const Inputs& in) {
    SoftmaxHooks hooks;
    hooks.hidden_score = -1e4F;
    hooks.guards_empty_rows = true;
    return naive_softmax(in, hooks);
  };
  return variant;
}

const Register<KernelVariant> registered{record()};

}  // namespace
}  // namespace attest::faulty
