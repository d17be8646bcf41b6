// Defect: batch element b starts its sums at key b, as a tile schedule taken from the block index does. Alone at place 0 it is
// right. Smallest case: B=2 and a few keys.
#include "kernels/faulty/naive.h"

namespace attest::faulty {
namespace {

KernelVariant record() {
  KernelVariant variant = faulty_variant("faulty.softmax.position_seeded", Op::kSoftmax,
                                         "the order of summation depends on the place in the batch", "batch_position.forward");
  variant.run = [](const Inputs& in) {
    SoftmaxHooks hooks;
    hooks.visited = [](const Inputs& x, int64_t b, int64_t n) { return (n + b) % x.problem.seqlen_kv; };
    return naive_softmax(in, hooks);
  };
  return variant;
}

const Register<KernelVariant> registered{record()};

}  // namespace
}  // namespace attest::faulty
