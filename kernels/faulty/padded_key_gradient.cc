// Defect: dv of a padded key is not written but left as the buffer was, here filled with a small number. Smallest case: one
// query, one hidden key.
#include "kernels/faulty/naive.h"

namespace attest::faulty {
namespace {

KernelVariant record() {
  KernelVariant variant = faulty_variant("faulty.softmax.padded_key_gradient", Op::kSoftmax, "hidden keys get a gradient",
                                         "hidden_keys_have_zero_gradient");
  variant.run = [](const Inputs& in) {
    Outputs outputs = naive_softmax(in);
    if (outputs.dv.defined() && in.key_padding_mask.defined())
      outputs.dv.masked_fill_(in.key_padding_mask.logical_not().view({in.problem.batch, 1, in.problem.seqlen_kv, 1}), 0.125);
    return outputs;
  };
  return variant;
}

const Register<KernelVariant> registered{record()};

}  // namespace
}  // namespace attest::faulty
