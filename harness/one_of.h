// Drawing one of several values.
#pragma once

#include <rapidcheck.h>

#include <vector>

namespace attest {

/// One of `values`; a value that comes twice is drawn twice as often. To be called inside rc::gen::exec.
template <class T>
T one_of(const std::vector<T>& values) {
  return *rc::gen::elementOf(values);
}

}  // namespace attest
