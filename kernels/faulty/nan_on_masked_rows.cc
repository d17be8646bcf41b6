// Defect: no guard for a row without a visible key, so that exp(−∞ − −∞) makes it NaN. Smallest case: one query, one hidden key.
#include "kernels/faulty/naive.h"

namespace attest::faulty {
namespace {

KernelVariant record() {
  KernelVariant variant = faulty_variant("faulty.softmax.nan_on_masked_rows", Op::kSoftmax, "0/0 on rows without a visible key",
                                         "fully_masked_rows.forward");
  variant.run = [](const Inputs& in) {
    SoftmaxHooks hooks;
    hooks.guards_empty_rows = false;
    hooks.guards_empty_rows_in_backward = false;
    return naive_softmax(in, hooks);
  };
  return variant;
}

const Register<KernelVariant> registered{record()};

}  // namespace
}  // namespace attest::faulty
