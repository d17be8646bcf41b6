// The tensors of one case. The one header that includes ATen (it is precompiled); all others forward-declare.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <string>
#include <vector>

#include "harness/attention_problem.h"
#include "harness/quantity.h"
#include "harness/sequence.h"

namespace attest {

struct Inputs {
  AttentionProblem problem;     // of the tensors: packed, batch 1 and T rows
  at::Tensor q, k, v;           // [B, Hq, Sq, D], [B, Hkv, Skv, D], [B, Hkv, Skv, Dv]; any strides
  at::Tensor dout;              // [B, Hq, Sq, Dv]; undefined: forward only
  at::Tensor dlse;              // fp32 [B, Hq, Sq], gradient of lse or rem; undefined: none
  at::Tensor key_padding_mask;  // bool [B, Skv], true = the key exists; undefined: every key exists
  Sequences kind = Sequences::kWhole;
  std::vector<Sequence> sequences;  // kWhole: none; kLengths: one for each batch element; kPacked: one after another

  bool backward() const { return dout.defined(); }
  /// The reason these inputs contradict their problem (a shape, a dtype, a device), or nothing.
  std::optional<std::string> invalid_reason() const;
  /// On `device`, laid out as these (see copy); these themselves when they are there already.
  Inputs to(Device device) const;
  /// In memory of its own, laid out as these: each storage copied once and whole, bytes between the rows included.
  Inputs copy() const;
  /// Without dout and dlse.
  Inputs forward_only() const;

  /// The sequences; of kWhole, the batch elements.
  std::vector<Sequence> each_sequence() const;
  /// What a domain judges: `problem`, but packed with the number of sequences for batch, the longest (or 1) for lengths.
  AttentionProblem extent() const;
  /// int32 on the device of q, [N + 1]: 0, then where each packed sequence ends.
  at::Tensor cu_seqlens_q() const;
  at::Tensor cu_seqlens_kv() const;
  /// int32 on the device of q, [B]: how many rows of its buffer each batch element uses.
  at::Tensor seqlens_q() const;
  at::Tensor seqlens_kv() const;
};

struct Outputs {
  at::Tensor out;  // [B, Hq, Sq, Dv]
  at::Tensor lse;  // fp32 [B, Hq, Sq]: lse or rem
  at::Tensor dq, dk, dv;

  at::Tensor& operator[](Quantity quantity);
  const at::Tensor& operator[](Quantity quantity) const;
  Outputs cpu() const;
};

/// One sequence alone, as a whole batch of one: views. It must have a query and a key.
Inputs one_sequence(const Inputs& in, const Sequence& s);
/// What `run` gives for each sequence alone, put where it lies in the whole; 0, and −∞ or 1 for lse or rem, elsewhere. On the
/// CPU. For inputs without sequences, what `run` gives.
Outputs run_each_sequence(const Inputs& in, const std::function<Outputs(const Inputs&)>& run);

at::ScalarType scalar_type(Dtype dtype);
Dtype dtype_of(at::ScalarType type);  // throws UsageError on any but half, bfloat16, float
at::Device torch_device(Device device);

/// An uninitialised output of a kernel of ours, filled with NaN unless poison_fresh(false) was called
/// (under compute-sanitizer initcheck a fill would hide an element nobody writes).
at::Tensor fresh(at::IntArrayRef sizes, at::ScalarType type, Device device);
void poison_fresh(bool on);

/// Makes libtorch's CUDA part available: loads libtorch_cuda.so once, when there is a GPU and that library.
/// Returns the reason it can't, or nothing.
std::optional<std::string> load_cuda();

}  // namespace attest
