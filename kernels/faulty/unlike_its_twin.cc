// Defect: it claims to be the twin of softmax.cpu.fixed_order, but sums from the last key to the first. It is right within its
// contract; only its bits differ. Smallest case: one query and a few keys.
#include "harness/twin.h"
#include "kernels/faulty/naive.h"

namespace attest::faulty {
namespace {

KernelVariant record() {
  KernelVariant variant =
      faulty_variant("faulty.softmax.unlike_its_twin", Op::kSoftmax, "claims a twin that sums in another order", "equals_twin.forward");
  variant.promises.insert("equals_twin.forward");
  variant.run = [](const Inputs& in) {
    SoftmaxHooks hooks;
    hooks.visited = [](const Inputs& x, int64_t, int64_t n) { return x.problem.seqlen_kv - 1 - n; };
    return naive_softmax(in, hooks);
  };
  return variant;
}

const Register<KernelVariant> registered{record()};
const Register<Twin> twin{{.name = "faulty.softmax.unlike_its_twin", .of = "softmax.cpu.fixed_order"}};

}  // namespace
}  // namespace attest::faulty
