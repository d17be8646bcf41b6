// Defect: tiles of 16 keys; from the second tile on the tail beyond Skv is not masked, so that absent keys enter with score 0 and
// value 0. Smallest case: one query, 17 keys.
#include "kernels/faulty/naive.h"

namespace attest::faulty {
namespace {

KernelVariant record() {
  KernelVariant variant = faulty_variant("faulty.softmax.tail_unmasked", Op::kSoftmax, "the tail of the last key tile is summed",
                                         "agrees_with_oracle.forward");
  variant.run = [](const Inputs& in) {
    SoftmaxHooks hooks;
    hooks.phantom_keys = [](const Inputs& x) {
      const int64_t n = x.problem.seqlen_kv;
      return n > 16 ? (16 - n % 16) % 16 : int64_t{0};
    };
    return naive_softmax(in, hooks);
  };
  return variant;
}

const Register<KernelVariant> registered{record()};

}  // namespace
}  // namespace attest::faulty
