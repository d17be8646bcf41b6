// Defect: the position of a query is counted from the capacity of the cache, not from its length, so that keys later than the
// query are visible. Smallest case: causal, two queries, one key in a cache of two.
#include "kernels/faulty/naive.h"

namespace attest::faulty {
namespace {

KernelVariant record() {
  KernelVariant variant = faulty_variant("faulty.softmax.position_from_capacity", Op::kSoftmax,
                                         "counts positions from the capacity of a cache", "lengths_equal_trimmed.forward");
  variant.domain = {.ops = {Op::kSoftmax}, .sequences = {Sequences::kWhole, Sequences::kLengths}, .padding = {KeyPadding::kNone}};
  variant.run = [](const Inputs& in) {
    return run_each_sequence(in, [&in](const Inputs& one) {
      const int64_t unused = in.problem.seqlen_kv - one.problem.seqlen_kv;
      return naive_softmax(one, {.visible = [unused](const Inputs& each, int64_t, int64_t i, int64_t j) {
        return !each.problem.causal || j <= each.problem.position(i) + unused;
      }});
    });
  };
  return variant;
}

const Register<KernelVariant> registered{record()};

}  // namespace
}  // namespace attest::faulty
