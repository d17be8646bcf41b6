// Defect: the first key of a packed sequence is taken one too early, so that the last key of the sequence before it is visible.
// Smallest case: two packed sequences, one query in the second, one key in the first; here two queries and two keys in all.
#include "kernels/faulty/naive.h"

namespace attest::faulty {
namespace {

KernelVariant record() {
  KernelVariant variant = faulty_variant("faulty.softmax.boundary_off_by_one", Op::kSoftmax,
                                         "sees the last key of the packed sequence before", "packed_equals_separate.forward");
  variant.domain = {.ops = {Op::kSoftmax}, .sequences = {Sequences::kWhole, Sequences::kPacked}};
  variant.run = [](const Inputs& in) {
    Inputs early = in;
    for (Sequence& s : early.sequences)
      if (s.kv_begin > 0) s.kv_begin -= 1, s.n_kv += 1;
    return naive_softmax(early);
  };
  return variant;
}

const Register<KernelVariant> registered{record()};

}  // namespace
}  // namespace attest::faulty
