// Defect: a workspace of 1 TB. Smallest case: any.
#include "kernels/faulty/naive.h"

namespace attest::faulty {
namespace {

KernelVariant record() {
  KernelVariant variant = faulty_variant("faulty.softmax.allocates_1tb", Op::kSoftmax, "asks for a terabyte", "returns");
  variant.run = [](const Inputs& in) {
    const at::Tensor workspace = at::empty({int64_t{1} << 40}, at::kByte);
    return naive_softmax(in);
  };
  return variant;
}

const Register<KernelVariant> registered{record()};

}  // namespace
}  // namespace attest::faulty
