// Defect: the number of parts a row's keys are cut into is taken from the number of queries, so a chunk of a prefill, and a
// decode step, sum in another order. Smallest case: two queries and a few keys.
#include "kernels/faulty/naive.h"

namespace attest::faulty {
namespace {

KernelVariant record() {
  KernelVariant variant =
      faulty_variant("faulty.softmax.chunk_splits", Op::kSoftmax, "as many key splits as queries", "chunked_prefill.forward");
  variant.run = [](const Inputs& in) {
    SoftmaxHooks hooks;
    hooks.splits = [](const Inputs& x) { return x.problem.seqlen_q; };
    return naive_softmax(in, hooks);
  };
  return variant;
}

const Register<KernelVariant> registered{record()};

}  // namespace
}  // namespace attest::faulty
