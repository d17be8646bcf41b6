// softmax.cpu.plain and stickbreaking.cpu.plain: textbook attention in fp32 with fp64 sums of gradients, one loop inside the
// other, on one thread. Unusual: they are the kernels in which kernels/faulty/ plants its defects, here without one, so that a
// law that passes them and fails a defect has found the defect; and they take sequences of different lengths, one after
// another. They promise every law but a host twin's.
#include "kernels/faulty/naive.h"

namespace attest {
namespace {

KernelVariant record(Op op) {
  const std::string name(name_of(op));
  KernelVariant variant = faulty::faulty_variant(name + ".cpu.plain", op, "plain loops in fp32, sequences of any lengths", "");
  variant.domain = {.ops = {op}, .sequences = EnumSet<Sequences>::all()};
  variant.run = op == Op::kSoftmax ? [](const Inputs& in) { return faulty::naive_softmax(in); }
                                   : [](const Inputs& in) { return faulty::naive_stickbreaking(in); };
  return variant;
}

const Register<KernelVariant> softmax{record(Op::kSoftmax)};
const Register<KernelVariant> stickbreaking{record(Op::kStickBreaking)};

}  // namespace
}  // namespace attest
