// Defect: it waits for a lock that nobody releases. Smallest case: any.
#include "kernels/faulty/naive.h"

namespace attest::faulty {
namespace {

KernelVariant record() {
  KernelVariant variant = faulty_variant("faulty.softmax.endless_loop", Op::kSoftmax, "never returns", "returns");
  variant.run = [](const Inputs&) -> Outputs {
    volatile bool locked = true;
    while (locked) {
    }
    return {};
  };
  return variant;
}

const Register<KernelVariant> registered{record()};

}  // namespace
}  // namespace attest::faulty
