// A Case: everything that makes one set of inputs, small enough to print, parse, hash and shrink.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

#include "harness/attention_problem.h"
#include "harness/sequence.h"

namespace attest {

/// Which keys the key-padding mask keeps. kSome draws each key by a coin; kAll hides every key of every odd batch
/// element, and of the only one when B = 1; kLeadingTile hides the first half of the keys.
enum class KeyPadding : uint8_t { kNone, kRight, kLeft, kSome, kAll, kLeadingTile };
template <>
struct EnumNames<KeyPadding> {
  static constexpr std::string_view kNames[] = {"none", "right", "left", "some", "all", "leading-tile"};
};

/// How q and k are filled, by what the logits z become. `magnitude` is the typical |z| for kSaturated, kNegative (its
/// sign is −) and kOneHot (q and k rows with one non-zero: logits exactly ±magnitude·scale, or 0).
enum class LogitFill : uint8_t { kNormal, kSaturated, kEqual, kCancelling, kSubnormal, kOneHot, kNegative };
template <>
struct EnumNames<LogitFill> {
  static constexpr std::string_view kNames[] = {"normal", "saturated", "equal", "cancelling", "subnormal", "one-hot", "negative"};
};

/// kSaturated, kNegative and kOneHot need a magnitude above 0; the others take none.
bool takes_magnitude(LogitFill fill);

/// How v and dout are filled.
enum class ValueFill : uint8_t { kNormal, kConstant, kOneHot, kCancelling, kSubnormal, kLarge };
template <>
struct EnumNames<ValueFill> {
  static constexpr std::string_view kNames[] = {"normal", "constant", "one-hot", "cancelling", "subnormal", "large"};
};

/// Strides of q, k, v, dout. Bytes between and around the rows hold NaN.
enum class Layout : uint8_t { kContiguous, kTransposed, kPackedQkv, kPadded, kMisaligned, kExpanded };
template <>
struct EnumNames<Layout> {
  static constexpr std::string_view kNames[] = {"contiguous", "transposed", "packed-qkv", "padded", "misaligned", "expanded"};
};

/// With sequences=packed, B is their number, Sq and Skv the longest that may be drawn; with sequences=lengths, Sq and Skv are
/// what the buffers hold. The lengths themselves are drawn from the seed (harness/lengths.h).
struct Case {
  AttentionProblem problem;
  Sequences sequences = Sequences::kWhole;
  KeyPadding padding = KeyPadding::kNone;
  bool poison = false;  // padded keys, and rows that belong to no sequence, hold NaN, ±Inf or 1e30 rather than numbers
  LogitFill logits = LogitFill::kNormal;
  float magnitude = 0.0F;
  ValueFill values = ValueFill::kNormal;
  bool dlse = false;  // a gradient arrives for lse (softmax) or rem (stick-breaking) too
  Layout layout = Layout::kContiguous;
  uint64_t seed = 0;

  bool operator==(const Case&) const = default;
  /// The reason this case is refused (its problem's, or its own), or nothing.
  std::optional<std::string> invalid_reason() const;
};

/// One line, e.g. `op=softmax B=1 Hq=2 Hkv=1 Sq=4 Skv=65 D=16 Dv=16 bf16 causal scale=0.25 padding=right poison
/// logits=saturated(88) values=one-hot dlse layout=padded seed=7`. What has its default value is left out, except sizes.
std::string to_string(const Case& c);
std::string to_string(const AttentionProblem& p);
std::ostream& operator<<(std::ostream& os, const Case& c);

/// Inverse of to_string; words in any order, missing ones take their default (D=16, scale 1/√D, sizes 1).
/// Throws UsageError naming the word it does not understand.
Case parse_case(std::string_view text);

/// A stable 64-bit hash of to_string(c), the same on every machine.
uint64_t hash_of(const Case& c);

}  // namespace attest
