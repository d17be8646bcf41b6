// A kernel of ours in two halves, for autograd: what the forward leaves spares the backward a second forward. Registered by the
// record's file, under the record's name; whole batches alone (Sequences::kWhole).
#pragma once

#include <functional>
#include <string>

#include "harness/tensors.h"

namespace attest {

struct TwoHalves {
  std::string name;  // of the KernelVariant whose bits the two give
  /// Writes `to`'s out and lse (or rem), on in's device. `saved`: bytes for the backward, kByte; empty: nothing is to be left.
  std::function<void(const Inputs& in, const Outputs& to, const at::Tensor& saved)> forward;
  /// Writes `to`'s dq, dk and dv, from its out and lse and from what the forward of the same inputs left in `saved`.
  std::function<void(const Inputs& in, const Outputs& to, const at::Tensor& saved)> backward;
};

/// Bytes of `saved`, a function of sizes alone. int64_t or SymInt; `heads`: batch · query heads.
template <class Int>
Int softmax_saved_bytes(const Int& heads, const Int& seqlen_q) {
  return heads * seqlen_q * 4;  // the dominant key of each query, int32
}

}  // namespace attest
