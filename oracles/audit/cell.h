// What an audit counts for one quantity of one tier.
#pragma once

#include <array>
#include <cstdint>

namespace attest {

/// Errors are |hi + lo − truth|; pessimism is radius / error, of the elements whose error the enclosure resolves.
struct AuditCell {
  int64_t elements = 0;
  int64_t violations = 0;  // the true value lies outside the radius, or value or radius is not a number
  int64_t undecided = 0;   // the enclosure of the true value was too wide to tell; none is wanted
  int64_t unbounded = 0;   // of infinite radius, which says nothing; they enter no figure below
  int64_t exact = 0;       // of error 0, or too small for the enclosure of the true value
  double worst_relative = 0;  // to the largest |value| of its tensor
  double worst_ulps = 0;      // of fp32, at the true value
  double most_pessimism = 0;
  std::array<int64_t, 1200> pessimism_octaves{};  // how many have a radius / error in [2^n, 2^(n+1)); the last: above all

  void add_pessimism(double ratio);
  void merge(const AuditCell& other);
  /// To an octave, its lower end; 0 when no error was resolved.
  double median_pessimism() const;
  bool sound() const { return violations == 0 && undecided == 0; }
};

}  // namespace attest
