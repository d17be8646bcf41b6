// Defect: the rows of all packed sequences take part in the matrix products, those of a neighbour with the weight 0. Finite rows
// add nothing; 0 · NaN is NaN. Smallest case: two packed sequences, of which one has a query and the other a key.
#include "kernels/faulty/naive.h"

namespace attest::faulty {
namespace {

/// [1, H, 1, D]: 0 times the sum of the rows of `t` outside [begin, begin + count).
at::Tensor zero_times_rest(const at::Tensor& t, int64_t begin, int64_t count) {
  const at::Tensor rest = at::cat({t.narrow(2, 0, begin), t.narrow(2, begin + count, t.size(2) - begin - count)}, 2);
  return (rest.to(at::kFloat) * 0).sum(2, true);
}

void add(const at::Tensor& to, int64_t begin, int64_t count, const at::Tensor& from, int64_t from_begin, int64_t from_count) {
  const at::Tensor rest = zero_times_rest(from, from_begin, from_count);
  const int64_t group = to.size(1) / rest.size(1), heads = rest.size(1) / to.size(1);
  const at::Tensor of_heads = group > 1 ? rest.repeat_interleave(group, 1)
                              : heads > 1 ? rest.view({1, to.size(1), heads, rest.size(3)}).sum(2, true)
                                          : rest;
  to.narrow(2, begin, count).add_(of_heads.to(to.scalar_type()));
}

KernelVariant record() {
  KernelVariant variant = faulty_variant("faulty.softmax.neighbours_times_zero", Op::kSoftmax,
                                         "weights the rows of other packed sequences with 0", "sequences_apart.forward");
  variant.domain = {.ops = {Op::kSoftmax}, .sequences = {Sequences::kPacked}, .poison = {false}};
  variant.run = [](const Inputs& in) {
    Outputs out = naive_softmax(in);
    for (const Sequence& s : in.sequences) {
      add(out.out, s.q_begin, s.n_q, in.v, s.kv_begin, s.n_kv);
      if (!in.backward()) continue;
      add(out.dq, s.q_begin, s.n_q, in.k, s.kv_begin, s.n_kv);
      add(out.dk, s.kv_begin, s.n_kv, in.q, s.q_begin, s.n_q);
      add(out.dv, s.kv_begin, s.n_kv, in.dout, s.q_begin, s.n_q);
    }
    return out;
  };
  return variant;
}

const Register<KernelVariant> registered{record()};

}  // namespace
}  // namespace attest::faulty
