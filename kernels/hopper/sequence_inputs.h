// Between the harness's sequences and the kernels', for the records of the fused kernels.
#pragma once

#include "harness/tensors.h"
#include "harness/variant.h"
#include "kernels/hopper/sequences.h"

namespace attest::fused {

inline Sequences sequences_of(const Inputs& in) {
  Sequences sequences;
  for (const attest::Sequence& s : in.each_sequence()) sequences.push_back({s.batch, s.q_begin, s.n_q, s.kv_begin, s.n_kv});
  return sequences;
}

/// `variant`, which takes sequences of different lengths too, and promises the laws on them.
inline KernelVariant with_sequences(KernelVariant variant) {
  variant.domain.sequences = EnumSet<attest::Sequences>::all();
  for (const char* law : {"packed_equals_separate", "lengths_equal_trimmed", "sequences_apart"})
    for (const char* side : {".forward", ".gradients"}) variant.promises.insert(std::string(law) + side);
  return variant;
}

}  // namespace attest::fused
