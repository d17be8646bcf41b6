// Property sequences_apart: a visible NaN or infinity stays in its own sequence, batch element and KV head. Unusual: it says
// nothing of the sequence that holds it, where it may or may not show. 0 · NaN is NaN: a kernel that weights a neighbour's rows
// with 0, rather than leaving them out, breaks it. Tried on the first, the middle and the last sequence.
#include <fmt/format.h>

#include <cmath>
#include <set>

#include "properties/support.h"

namespace attest {
namespace {

/// What one KV head of a sequence reads (`keys`), or what its query heads read, made NaN and infinite; the rest not compared.
Part spoiled(const Inputs& in, size_t number, int64_t head, bool keys) {
  const Sequence s = in.each_sequence()[number];
  const int64_t group = in.problem.group();
  Part part{.what = fmt::format("the run with NaN and infinity in {} of sequence {}, KV head {},", keys ? "k and v" : "q and dout",
                                number, head),
            .inputs = in.copy(),
            .left_out = s,
            .left_out_head = head};
  const auto fill = [&](const at::Tensor& t, double value) {
    if (!t.defined()) return;
    const at::Tensor heads = t.narrow(0, s.batch, 1).narrow(1, keys ? head : head * group, keys ? 1 : group);
    heads.narrow(2, keys ? s.kv_begin : s.q_begin, keys ? s.n_kv : s.n_q).fill_(value);
  };
  fill(keys ? part.inputs.k : part.inputs.q, NAN);
  fill(keys ? part.inputs.v : part.inputs.dout, INFINITY);
  return part;
}

Verdict sequences_apart(Trial& trial) {
  const Inputs& in = trial.inputs();
  const size_t count = in.each_sequence().size();
  if (count < 2 && in.problem.num_heads_kv < 2) return vacuous("there is one sequence and one KV head");
  std::vector<Part> parts;
  for (size_t number : std::set<size_t>{0, count / 2, count - 1})
    for (bool keys : {true, false})
      parts.push_back(spoiled(in, number, static_cast<int64_t>(number) % in.problem.num_heads_kv, keys));
  return equal_bits(trial, parts);
}

const RegisterPair registered({
    .name = "sequences_apart",
    .law = "A visible NaN or infinity changes no bit of another sequence, batch element or KV head.",
    .domain = {.sequences = EnumSet<Sequences>::all(), .layouts = EnumSet<Layout>::all().without(Layout::kExpanded)},
    .faulty = "faulty.softmax.neighbours_times_zero",
    .check = sequences_apart,
});

}  // namespace
}  // namespace attest
