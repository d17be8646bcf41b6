// A high-precision reference. One file under oracles/ registers one.
#pragma once

#include <functional>
#include <string>

#include "harness/case_domain.h"
#include "harness/registry.h"

namespace attest {

struct Inputs;
struct Reference;

struct Oracle {
  std::string name;     // e.g. softmax.definition
  std::string summary;  // one line
  CaseDomain domain;    // bounds work, not lengths
  /// Inputs on the CPU, of any strides. Fills every quantity; gradients only when inputs.backward().
  std::function<Reference(const Inputs&)> evaluate;
};

}  // namespace attest
