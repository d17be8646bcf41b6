// Defect: every second run sums the keys from the other end, as atomics do by chance. Smallest case: a few keys.
#include "kernels/faulty/naive.h"

#include <atomic>

namespace attest::faulty {
namespace {

KernelVariant record() {
  KernelVariant variant = faulty_variant("faulty.softmax.nondeterministic_order", Op::kSoftmax,
                                         "the order of summation changes from run to run", "repeat_run.forward");
  variant.run = [](const Inputs& in) {
    SoftmaxHooks hooks;
    static std::atomic<int> runs{0};
    if (runs++ % 2 == 1) hooks.visited = [](const Inputs& x, int64_t, int64_t n) { return x.problem.seqlen_kv - 1 - n; };
    return naive_softmax(in, hooks);
  };
  return variant;
}

const Register<KernelVariant> registered{record()};

}  // namespace
}  // namespace attest::faulty
