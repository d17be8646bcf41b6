// Defect: the loop over the keys of a cache ends one too late, so that the first row past the length is read as the newest key.
// Smallest case: one query, a cache of one key that holds none.
#include "kernels/faulty/naive.h"

namespace attest::faulty {
namespace {

KernelVariant record() {
  KernelVariant variant = faulty_variant("faulty.stickbreaking.one_key_past_the_length", Op::kStickBreaking,
                                         "reads one key past the length of a cache", "lengths_equal_trimmed.forward");
  variant.domain = {.ops = {Op::kStickBreaking}, .sequences = {Sequences::kWhole, Sequences::kLengths}};
  variant.run = [](const Inputs& in) {
    Inputs late = in;
    for (Sequence& s : late.sequences)
      if (s.n_kv < in.problem.seqlen_kv) s.n_kv += 1;
    return naive_stickbreaking(late);
  };
  return variant;
}

const Register<KernelVariant> registered{record()};

}  // namespace
}  // namespace attest::faulty
