// Defect: the number of parts a row's keys are cut into is taken from the batch size, so a sequence alone sums in another order.
// Smallest case: B=2 and a few keys.
#include "kernels/faulty/naive.h"

namespace attest::faulty {
namespace {

KernelVariant record() {
  KernelVariant variant =
      faulty_variant("faulty.softmax.split_by_batch", Op::kSoftmax, "as many key splits as batch elements", "batch_size.forward");
  variant.run = [](const Inputs& in) {
    SoftmaxHooks hooks;
    hooks.splits = [](const Inputs& x) { return x.problem.batch; };
    return naive_softmax(in, hooks);
  };
  return variant;
}

const Register<KernelVariant> registered{record()};

}  // namespace
}  // namespace attest::faulty
