// Defect: the row maximum is taken before the mask is applied, so later keys change the rounding of earlier rows, or their every
// bit once a later score is large. Smallest case: two queries, two keys.
#include "kernels/faulty/naive.h"

namespace attest::faulty {
namespace {

KernelVariant record() {
  KernelVariant variant = faulty_variant("faulty.softmax.peeks_ahead", Op::kSoftmax,
                                         "the row maximum is taken over later keys too", "causal_prefix.forward");
  variant.run = [](const Inputs& in) {
    SoftmaxHooks hooks;
    hooks.maximum_over_all_keys = true;
    return naive_softmax(in, hooks);
  };
  return variant;
}

const Register<KernelVariant> registered{record()};

}  // namespace
}  // namespace attest::faulty
