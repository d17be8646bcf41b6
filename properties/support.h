// What the laws share: running parts of a case, comparing their bits with the whole's, and telling what nobody sees.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/property.h"
#include "harness/reference.h"
#include "harness/tensors.h"

namespace attest {

/// Registers `law` twice, as NAME.forward (out, lse or rem) and NAME.gradients (`gradients`), with one faulty variant.
struct RegisterPair {
  explicit RegisterPair(const Property& law, EnumSet<Quantity> gradients = kGradients);
};

/// Other inputs whose outputs must have the bits of a region of the whole's.
struct Part {
  std::string what;            // for the sentence, e.g. "batch element 1 run alone"
  Inputs inputs;
  std::vector<int64_t> batch;  // which of the whole's batch elements the part's are, in order; empty: the same
  int64_t query_begin = 0;     // the part's query 0 is this query of the whole
  int64_t queries = -1;        // how many of the part's queries are compared; −1: all
  int64_t key_begin = 0;       // the part's key 0 is this key of the whole
  int64_t keys = -1;           // −1: the part has the keys of the whole
  std::optional<Sequence> left_out;  // not compared: this sequence's rows, under one KV head
  int64_t left_out_head = 0;
};

/// A sequence of `in` run alone, as a whole batch of one. It must have a query and a key.
Part alone(const Inputs& in, size_t number);
/// As alone(), for each sequence that has a query and a key.
std::vector<Part> each_alone(const Inputs& in);
/// `in` with other contents in the rows that belong to no sequence, NaN too if the variant takes poison; none when there are
/// no such rows.
std::vector<Part> refilled_outside(const Trial& trial, const Inputs& in);

struct BitRules {
  at::Tensor blind_keys;       // bool [B, Skv] on the CPU: keys whose dk and dv are left out; undefined: none
  bool nan_may_equal = false;  // for two runs on the same inputs
};

/// Runs each part (those the variant supports; forward only where no gradient is judged) and compares the bits of
/// `trial.quantities()`. Unsupported when the variant supports no part, vacuous when there is none.
Verdict equal_bits(Trial& trial, const std::vector<Part>& parts, const BitRules& rules = {});

/// Copies on the CPU: a variant that uses its buffers again can't reach them.
Outputs snapshot(const Outputs& outputs);

/// Why the variant need not run these inputs, or nothing.
std::optional<std::string> unsupported_reason(const KernelVariant& variant, const Inputs& inputs);

/// The inputs that suffice for what is judged: without dout where that is no gradient.
Inputs sufficient(const Trial& trial, const Inputs& inputs);

/// The problem of the longest sequence: that by which error bounds are taken.
AttentionProblem longest(const Inputs& inputs);

/// What the masks leave unseen, bool on the CPU: queries [B, Sq] that see no key, keys [B, Skv] that no query sees.
struct Blind {
  at::Tensor queries, keys;
};
Blind blind(const Inputs& inputs);

/// Contiguous bool [B, Skv] on the CPU, true = the key is padded. Undefined when there is no mask.
at::Tensor padded_keys(const Inputs& inputs);

/// float64 like reference.value: the error that `tolerance` allows at each element.
/// `baseline` is needed by kTimesBaseline alone.
at::Tensor allowed_error(const ReferenceQuantity& reference, const Tolerance& tolerance, const ErrorUnits& units,
                         at::ScalarType type, const at::Tensor& baseline);

/// E.g. "dk[0,0,3,5] = 0.25 (0x3e80)". `t` on the CPU.
std::string element_text(std::string_view name, const at::Tensor& t, const std::vector<int64_t>& index);
/// E.g. "0x3e80", or "0x3e800000" for fp32.
std::string bits_text(uint64_t bits, int width);
/// E.g. "[1,0,3,5]".
std::string index_text(const std::vector<int64_t>& index);
/// The first element where `mask` (bool, on the CPU) is true, or nothing.
std::optional<std::vector<int64_t>> first_true(const at::Tensor& mask);

}  // namespace attest
