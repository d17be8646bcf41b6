// Defect: absent keys are counted: each padded key adds one to the normaliser of rows that see something, as a padded mean does.
// Smallest case: one query, two keys, one of them padding.
#include "kernels/faulty/naive.h"

namespace attest::faulty {
namespace {

KernelVariant record() {
  KernelVariant variant =
      faulty_variant("faulty.softmax.counts_padding", Op::kSoftmax, "padding adds to the normaliser", "padded_trimmed.forward");
  variant.run = [](const Inputs& in) {
    SoftmaxHooks hooks;
    hooks.phantom_keys = [](const Inputs& x) {
      const bool padded = x.key_padding_mask.defined() && !x.key_padding_mask.all().item<bool>();
      return padded && !x.problem.causal ? int64_t{1} : int64_t{0};
    };
    return naive_softmax(in, hooks);
  };
  return variant;
}

const Register<KernelVariant> registered{record()};

}  // namespace
}  // namespace attest::faulty
