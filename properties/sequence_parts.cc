// The parts that laws on sequences run: one alone, and the whole with other contents where no sequence lies.
#include <fmt/format.h>

#include <cmath>

#include "harness/slice.h"
#include "properties/support.h"

namespace attest {

Part alone(const Inputs& in, size_t number) {
  const Sequence s = in.each_sequence()[number];
  return {.what = fmt::format("sequence {} run alone", number),
          .inputs = contiguous(one_sequence(in, s)),
          .batch = {s.batch},
          .query_begin = s.q_begin,
          .queries = s.n_q,
          .key_begin = s.kv_begin,
          .keys = s.n_kv};
}

std::vector<Part> each_alone(const Inputs& in) {
  std::vector<Part> parts;
  const std::vector<Sequence> all = in.each_sequence();
  for (size_t n = 0; n < all.size(); ++n)
    if (all[n].n_q > 0 && all[n].n_kv > 0) parts.push_back(alone(in, n));
  return parts;
}

std::vector<Part> refilled_outside(const Trial& trial, const Inputs& in) {
  const Outside rows = outside_sequences(in);
  if (!rows.queries.any().item<bool>() && !rows.keys.any().item<bool>()) return {};
  std::vector<Part> parts;
  std::vector<double> contents{0.0, -1000.0};
  if (trial.variant().domain.poison.contains(true)) contents.insert(contents.end(), {NAN, INFINITY});
  for (double content : contents)
    parts.push_back({.what = fmt::format("the run with {} in every row that belongs to no sequence", content),
                     .inputs = fill_outside(in, content)});
  return parts;
}

}  // namespace attest
