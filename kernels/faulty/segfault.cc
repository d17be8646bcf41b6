// Defect: a write through a null pointer. Smallest case: any.
#include "kernels/faulty/naive.h"

namespace attest::faulty {
namespace {

KernelVariant record() {
  KernelVariant variant = faulty_variant("faulty.softmax.segfault", Op::kSoftmax, "writes through a null pointer", "returns");
  variant.run = [](const Inputs&) -> Outputs {
    volatile int* nowhere = nullptr;
    *nowhere = 1;
    return {};
  };
  return variant;
}

const Register<KernelVariant> registered{record()};

}  // namespace
}  // namespace attest::faulty
