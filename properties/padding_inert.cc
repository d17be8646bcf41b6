// Property padding_inert: what a padded key holds reaches nothing. Finite contents for every variant; NaN and infinity
// for those whose domain has poison. dk and dv of the padded keys themselves are zeros of either sign: another law's.
#include <fmt/format.h>

#include <cmath>

#include "harness/slice.h"
#include "properties/support.h"

namespace attest {
namespace {

Verdict padding_inert(Trial& trial) {
  const Inputs& in = trial.inputs();
  const at::Tensor padded = padded_keys(in);
  if (!padded.defined() || !padded.any().item<bool>()) return vacuous("no key is padded");
  std::vector<double> contents{0.0, 1000.0, -1000.0};
  if (trial.variant().domain.poison.contains(true)) contents.insert(contents.end(), {NAN, INFINITY});
  std::vector<Part> parts;
  for (double content : contents)
    parts.push_back({.what = fmt::format("the run with {} in every padded key and value", content),
                     .inputs = fill_padded_keys(in, content)});
  return equal_bits(trial, parts, {.blind_keys = padded});
}

const RegisterPair registered({
    .name = "padding_inert",
    .law = "The contents of padded keys change no bit of any output.",
    .domain = {.sequences = EnumSet<Sequences>::all(), .padding = EnumSet<KeyPadding>::all().without(KeyPadding::kNone)},
    .faulty = "faulty.softmax.padding_sentinel",
    .check = padding_inert,
});

}  // namespace
}  // namespace attest
