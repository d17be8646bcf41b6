#include "oracles/audit/cell.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace attest {

void AuditCell::add_pessimism(double ratio) {
  most_pessimism = std::max(most_pessimism, ratio);
  const int last = static_cast<int>(pessimism_octaves.size()) - 1;
  const int octave = std::isfinite(ratio) ? std::clamp(std::ilogb(std::max(ratio, 1.0)), 0, last) : last;
  ++pessimism_octaves[octave];
}

void AuditCell::merge(const AuditCell& other) {
  elements += other.elements;
  violations += other.violations;
  undecided += other.undecided;
  unbounded += other.unbounded;
  exact += other.exact;
  worst_relative = std::max(worst_relative, other.worst_relative);
  worst_ulps = std::max(worst_ulps, other.worst_ulps);
  most_pessimism = std::max(most_pessimism, other.most_pessimism);
  for (size_t n = 0; n < pessimism_octaves.size(); ++n) pessimism_octaves[n] += other.pessimism_octaves[n];
}

double AuditCell::median_pessimism() const {
  const int64_t all = std::accumulate(pessimism_octaves.begin(), pessimism_octaves.end(), int64_t{0});
  if (all == 0) return 0;
  int64_t below = 0;
  size_t octave = 0;
  while (2 * (below += pessimism_octaves[octave]) <= all) ++octave;
  return std::ldexp(1.0, static_cast<int>(octave));
}

}  // namespace attest
