// Defect: the query is scaled in place, so the caller's tensor is changed. Smallest case: one query, one key.
#include "kernels/faulty/naive.h"

namespace attest::faulty {
namespace {

KernelVariant record() {
  KernelVariant variant = faulty_variant("faulty.softmax.scales_query_in_place", Op::kSoftmax, "changes its input", "returns");
  variant.run = [](const Inputs& in) {
    Inputs scaled = in;
    scaled.q.mul_(2);
    scaled.problem.softmax_scale /= 2;
    return naive_softmax(scaled);
  };
  return variant;
}

const Register<KernelVariant> registered{record()};

}  // namespace
}  // namespace attest::faulty
