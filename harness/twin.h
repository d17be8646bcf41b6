// A variant that promises the bits of another one wherever both run: property equals_twin. A file under kernels/ registers it.
#pragma once

#include <string>

#include "harness/registry.h"

namespace attest {

struct Twin {
  std::string name;  // of the variant that promises
  std::string of;    // of the other one, of the same operator and device; it need not be in every build
};

}  // namespace attest
