// A high-precision reference. One file under oracles/ registers one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/case_domain.h"
#include "harness/registry.h"

namespace attest {

struct Inputs;
struct Reference;

struct Oracle {
  std::string name;     // e.g. softmax.definition
  std::string summary;  // one line
  CaseDomain domain;    // bounds work, not lengths
  /// Ways to evaluate, from the cheapest to the one with the narrowest radii, e.g. "double". A verdict that one tier leaves
  /// undecided is judged again with the next.
  std::vector<std::string> tiers;
  std::string limit = "it has no further tier";  // why the last tier is the last, for an undecided verdict
  /// Inputs on the CPU, of any strides; `tier` is an index. Fills every quantity; gradients only when inputs.backward().
  std::function<Reference(const Inputs&, size_t tier)> evaluate;
};

}  // namespace attest
