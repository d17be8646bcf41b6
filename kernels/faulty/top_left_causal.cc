// Defect: the causal mask is aligned to the top left (j ≤ i) where it belongs to the bottom right (j ≤ Skv − Sq + i). The two are
// one where Sq = Skv. Smallest case: B=1, one head, one query, two keys.
#include "kernels/faulty/naive.h"

namespace attest::faulty {
namespace {

bool visible(const Inputs& in, int64_t b, int64_t i, int64_t j) {
  if (!in.problem.causal) return visible_by_definition(in, b, i, j);
  const bool kept = !in.key_padding_mask.defined() || in.key_padding_mask[b][j].item<bool>();
  return kept && j <= i;
}

KernelVariant record() {
  KernelVariant variant = faulty_variant("faulty.softmax.top_left_causal", Op::kSoftmax, "causal mask aligned top-left",
                                         "agrees_with_oracle.forward");
  variant.run = [](const Inputs& in) {
    SoftmaxHooks hooks;
    hooks.visible = visible;
    return naive_softmax(in, hooks);
  };
  return variant;
}

const Register<KernelVariant> registered{record()};

}  // namespace
}  // namespace attest::faulty
