// Other people's operators as subjects: `--variant torch:ns::op` and `--load FILE.so`.
#pragma once

#include <string>

#include "harness/variant.h"

namespace attest {

/// A variant called `torch:NAME` that runs the Torch operator NAME ("ns::op" or "ns::op.overload") on `device`, its backward
/// through autograd. Arguments are mapped by name: q|query, k|key, v|value; key_padding_mask (bool [B, Skv], true = the key
/// exists) or attn_mask|attn_bias (added to the logits, [B or 1, 1, Sq, Skv]); causal (bottom-right) or is_causal (top-left, as
/// in Torch); scale|softmax_scale; attend_current; enable_gqa. All others take their defaults. The first result is out; a result
/// called lse, rem or logsumexp is that. What has no argument narrows the domain. It is stick-breaking when it has attend_current
/// or its name contains "stick", else softmax. Throws UsageError when there is no such operator or an argument can't be filled.
KernelVariant torch_operator_variant(const std::string& qualified_name, Device device);

/// Loads a shared library that registers Torch operators, or variants, laws and oracles of Attest's, as it is loaded. Throws UsageError
/// with the loader's text.
void load_operators(const std::string& so_path);

}  // namespace attest
