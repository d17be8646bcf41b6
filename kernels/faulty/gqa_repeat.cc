// Defect: KV heads are tiled (repeat) where they are grouped (repeat_interleave). The two are one unless Hkv ≥ 2 and the group is
// larger than 1. Smallest case: Hq=4, Hkv=2, one query, one key.
#include "kernels/faulty/naive.h"

namespace attest::faulty {
namespace {

KernelVariant record() {
  KernelVariant variant = faulty_variant("faulty.softmax.gqa_repeat", Op::kSoftmax, "query head h reads KV head h mod Hkv",
                                         "agrees_with_oracle.forward");
  variant.run = [](const Inputs& in) {
    SoftmaxHooks hooks;
    hooks.kv_head = [](const AttentionProblem& p, int64_t h) { return h % p.num_heads_kv; };
    return naive_softmax(in, hooks);
  };
  return variant;
}

const Register<KernelVariant> registered{record()};

}  // namespace
}  // namespace attest::faulty
