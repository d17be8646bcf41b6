// For the tests of the laws: a plain attention kernel in fp32 that reads any strides, with defects to seed one at a time,
// and a trial that needs no campaign.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/property.h"
#include "harness/reference.h"
#include "harness/tensors.h"

namespace attest {

enum class Defect : uint8_t {
  kNone,
  kTopLeftCausal,        // key j visible iff j ≤ i
  kNanOnMaskedRows,      // no guard before the division
  kMaskedRowGradients,   // the backward takes exp(z − lse) with lse = −∞
  kGqaRepeat,            // query head h reads KV head h mod Hkv
  kDropsDlse,            // the gradient of lse is ignored
  kOneMinusBeta,         // stick-breaking backward with 1 − σ(z) for σ(−z)
  kLaunchOrder,          // the tile size depends on how often the kernel has run
  kSplitByBatch,         // … on the batch size
  kPositionSeeded,       // … on the position in the batch
  kDecodeTile,           // … on whether there is one query
  kChunkRelativeTiles,   // tiles are cut from the last key backwards
  kSplitsByCapacity,     // … on the head stride of k
  kPaddingSentinel,      // a padded key scores −1e4
  kPaddingInDenominator, // a padded key scores 0 and its value counts as 0
  kPeeksAhead,           // the row maximum is taken over later keys too
  kPaddedKeyGradient,    // dk of a padded key is that of a visible one
};

/// Deterministic, in fp32, tiles of two keys at absolute positions; contract elementwise(1e-2, 1e-2).
KernelVariant plain_kernel(Op op, Defect defect = Defect::kNone);

/// Distinct numbers in [−2, 2] everywhere; dout and dlse too.
Inputs numbered_inputs(const AttentionProblem& p);
/// As above, with the last `padded[b]` keys of batch element b padded.
Inputs padded_inputs(const AttentionProblem& p, const std::vector<int64_t>& padded);

/// The same arithmetic in float64: radius 0, no terms.
Reference plain_reference(const Inputs& in);

class FakeTrial : public Trial {
 public:
  FakeTrial(const KernelVariant& variant, Inputs inputs, EnumSet<Quantity> judges);
  const KernelVariant& variant() const override { return variant_; }
  const Inputs& inputs() const override { return inputs_; }
  const Outputs& outputs() override;
  const Reference& reference() override;
  const Outputs& baseline() override;
  Outputs run(const Inputs& inputs) override { return variant_.run(inputs); }
  EnumSet<Quantity> quantities() const override { return quantities_; }

 private:
  const KernelVariant& variant_;
  Inputs inputs_;
  EnumSet<Quantity> quantities_;
  std::optional<Outputs> baseline_;
  std::optional<Outputs> outputs_;
  std::optional<Reference> reference_;
};

/// The verdict of the registered property `name`.
Verdict judged(const std::string& name, const KernelVariant& variant, const Inputs& inputs);
/// … for the plain kernel.
Status status_of(const std::string& name, const Inputs& inputs);

}  // namespace attest
