// Defect: it claims softmax.cpu.fixed_order as its host twin, but sums from the last key to the first and calls the library's
// exp. It is right within its contract; only its bits differ. Smallest case: one query and a few keys.
#include "kernels/faulty/naive.h"

namespace attest::faulty {
namespace {

KernelVariant record() {
  KernelVariant variant = faulty_variant("faulty.softmax.no_twin", Op::kSoftmax, "claims a host twin with another order of sums",
                                         "equals_host_twin.forward");
  variant.promises.insert("equals_host_twin.forward");
  variant.run = [](const Inputs& in) {
    SoftmaxHooks hooks;
    hooks.visited = [](const Inputs& x, int64_t, int64_t n) { return x.problem.seqlen_kv - 1 - n; };
    return naive_softmax(in, hooks);
  };
  return variant;
}

const Register<KernelVariant> registered{record()};

}  // namespace
}  // namespace attest::faulty
