// Property repeat_run: purity. The only law where NaN may equal NaN: a function of its inputs may be NaN, but always the
// same. Between the runs the variant works on other inputs and the allocator's free blocks are filled with NaN, so that
// what it leaves in a workspace, or counts from launch to launch, shows.
#include <cmath>

#include "properties/support.h"

namespace attest {
namespace {

/// Dirties the blocks that the allocator will hand out next.
void dirty_free_memory(const Inputs& in) {
  const AttentionProblem& p = in.problem;
  std::vector<at::Tensor> blocks;
  for (int64_t size : {in.q.numel(), in.k.numel(), in.v.numel(), p.seqlen_q * p.seqlen_kv, p.batch * p.num_heads_q * p.seqlen_q})
    for (int64_t times : {1, 2, 4}) blocks.push_back(at::full({size * times}, NAN, in.q.options().dtype(at::kFloat)));
}

Inputs negated(const Inputs& in) {
  Inputs other = in;
  other.q = in.q.neg();
  other.v = in.v.neg();
  return other;
}

Verdict repeat_run(Trial& trial) {
  const Inputs& in = trial.inputs();
  Verdict verdict = equal_bits(trial, {{.what = "the second run", .inputs = in}, {.what = "the third run", .inputs = in}},
                               {.nan_may_equal = true});
  if (verdict.status != Status::kPass) return verdict;
  trial.run(sufficient(trial, negated(in)));
  dirty_free_memory(in);
  return equal_bits(trial, {{.what = "the run after one on other inputs", .inputs = in}}, {.nan_may_equal = true});
}

const RegisterPair registered({
    .name = "repeat_run",
    .law = "The same inputs give the same bits again, whatever ran in between.",
    .domain = {.sequences = EnumSet<Sequences>::all()},
    .faulty = "faulty.softmax.nondeterministic_order",
    .check = repeat_run,
});

}  // namespace
}  // namespace attest
