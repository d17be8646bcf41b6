// Fills one ReferenceQuantity element by element.
#pragma once

#include "harness/reference.h"
#include "oracles/error_terms.h"
#include "oracles/wide.h"

namespace attest {

/// A sum in the making: an element of out or of a gradient.
struct Cell {
  Wide sum = 0;
  ErrorTerms terms;
  double trivial = 0;
  int64_t count = 0;  // summands
};

class QuantityWriter {
 public:
  /// Allocates `quantity` for `shape`. `units` are those of the oracle's own arithmetic.
  QuantityWriter(ReferenceQuantity& quantity, at::IntArrayRef shape, const ErrorUnits& units);

  /// An element that the definition gives exactly: no error terms, and nothing trivial about it.
  void put_exactly(int64_t index, double value);
  /// The trivial bound 0 (the value is 0 whatever the data) is replaced by infinity: a kernel may still get it wrong.
  void put(int64_t index, const Cell& cell);

 private:
  double radius(const Cell& cell, double value) const;

  ErrorUnits units_;
  int64_t elements_;
  double *value_, *radius_, *terms_, *trivial_;
};

}  // namespace attest
