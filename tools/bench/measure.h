// All variants on one case and pass, in one process.
#pragma once

#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/variant.h"
#include "tools/bench/result.h"
#include "tools/bench/timer.h"

namespace attest {
struct Inputs;
}

namespace attest::bench {

struct Job {
  BenchCase bench_case;
  Pass pass = Pass::kForward;
  Device device = Device::kCuda;
  int64_t repeats = 30;

  bool operator==(const Job&) const = default;
};

/// q, k, v and, for kBoth, dout and what a stick-breaking kernel has to do besides, drem; on the device; the seed is fixed.
Inputs random_inputs(const BenchCase& c, Pass pass, Device device);

/// The same tensors as a problem of `op`, without the gradient of lse or rem: to time another operator beside.
Inputs as_operator(Op op, const Inputs& inputs);

/// Learns what happens while it happens, so that it is known when the process ends before its time.
struct Listener {
  std::function<void(const std::string& variant)> trying;  // before every run
  std::function<void(const Row& row)> row;                 // a variant is done with
};

/// A variant has left the device unusable; its row was given to the listener.
class BrokenDevice : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Each variant is run twice to warm up, the second time for its peak memory (and, for kGraph, captured); then `repeats` rounds of
/// all that work, so that heat and clocks hit all alike. What fails gives its row and drops out. A variant of another operator gets
/// the case's tensors as as_operator() makes them.
void measure(const Job& job, const std::vector<const KernelVariant*>& variants, const Timer& timer, const Listener& listener);

}  // namespace attest::bench
