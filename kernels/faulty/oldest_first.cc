// Defect: the oldest key takes its share first. Smallest case: one query, two keys.
#include "kernels/faulty/naive.h"

namespace attest::faulty {
namespace {

KernelVariant record() {
  KernelVariant variant = faulty_variant("faulty.stickbreaking.oldest_first", Op::kStickBreaking,
                                         "the stick is broken from the far end", "agrees_with_oracle.forward");
  variant.run = [](const Inputs& in) { return naive_stickbreaking(in, {.oldest_first = true}); };
  return variant;
}

const Register<KernelVariant> registered{record()};

}  // namespace
}  // namespace attest::faulty
