#include "oracles/audit/regimes.h"

#include <algorithm>
#include <cmath>

#include "harness/philox.h"

namespace attest {
namespace {

/// Random choices for one case: a function of (seed, op, regime, index).
class Draw {
 public:
  Draw(uint64_t seed, Op op, Regime regime, uint32_t index)
      : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
        counter_{0, index, static_cast<uint32_t>(regime), static_cast<uint32_t>(op)} {}

  uint64_t word() {
    const PhiloxBlock block = philox(counter_, key_);
    ++counter_[0];
    return uint64_t{block[0]} << 32 | block[1];
  }
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(word() % static_cast<uint64_t>(high - low + 1));
  }
  bool coin(int64_t one_in = 2) { return between(1, one_in) == 1; }
  template <class T>
  T of(std::initializer_list<T> choices) {
    return choices.begin()[between(0, static_cast<int64_t>(choices.size()) - 1)];
  }
  /// In [2^low, 2^high), its logarithm nearly uniform.
  float magnitude(int64_t low, int64_t high) {
    const int64_t exponent = between(low, high - 1);
    return static_cast<float>(std::ldexp(1.0 + static_cast<double>(between(0, 1023)) / 1024, static_cast<int>(exponent)));
  }

 private:
  std::array<uint32_t, 2> key_;
  PhiloxBlock counter_;
};

/// Sizes of a few thousand to some ten thousand elements; scale, group, dtype, causality at random.
Case any_case(Draw& draw, Op op, const AuditSizes& sizes) {
  Case c;
  AttentionProblem& p = c.problem;
  const bool stick = op == Op::kStickBreaking;
  p.op = op;
  p.dtype = draw.of({Dtype::kFloat16, Dtype::kBFloat16, Dtype::kFloat32});
  p.num_heads_q = draw.coin(4) ? draw.between(2, 3) : 1;
  p.seqlen_q = draw.between(1, 64);
  p.seqlen_kv = draw.coin(4) ? draw.between(1, 96) : draw.between(p.seqlen_q, 96);
  p.head_dim = std::min(sizes.head_dim, draw.of<int64_t>({1, 7, 16, 64, 96, 128, 128, 256}));
  p.head_dim_v = draw.coin(4) ? draw.between(1, std::min<int64_t>(sizes.head_dim, 160)) : p.head_dim;
  p.causal = stick || draw.coin();
  p.attend_current = stick && draw.coin();
  p.softmax_scale = draw.coin(8) ? draw.of({-0.3F, 1.0F, 0.1F}) : default_softmax_scale(p.head_dim);
  c.dlse = draw.coin();
  c.seed = draw.word();
  return c;
}

void set_logits(Case& c, LogitFill fill, float magnitude = 0) {
  c.logits = fill;
  c.magnitude = takes_magnitude(fill) ? magnitude : 0;
}

/// Logits that spread over the threshold; or, where the bound is sharp, one-hot rows that come to lie just below it: e^(z − m)
/// for softmax, and a product of (1 − β) that halves with every key that is orthogonal to the query.
void set_threshold(Case& c, Draw& draw, const AuditSizes& sizes) {
  AttentionProblem& p = c.problem;
  const bool softmax = p.op == Op::kSoftmax;
  p.seqlen_q = draw.between(8, 24);
  p.seqlen_kv = draw.between(64, 128);
  if (draw.coin()) {
    set_logits(c, softmax || draw.coin() ? LogitFill::kSaturated : LogitFill::kNegative,
               static_cast<float>(softmax ? draw.between(200, 440) : draw.between(8, 60)));
    return;
  }
  p.dtype = Dtype::kFloat32;
  p.num_heads_q = 1;
  p.head_dim = p.head_dim_v = std::min<int64_t>(sizes.head_dim, 8);
  p.softmax_scale = 1;
  const auto fraction = static_cast<float>(draw.between(0, 511)) / 1024;
  set_logits(c, LogitFill::kOneHot, softmax ? 600 + fraction : static_cast<float>(draw.between(30, 80)) + fraction);
  p.seqlen_q = softmax ? 1 : 128;
  p.seqlen_kv = softmax ? draw.between(2, 12) : 128;
}

void set_long(Case& c, Draw& draw, uint32_t index, const AuditSizes& sizes) {
  AttentionProblem& p = c.problem;
  p.num_heads_q = 1;
  p.head_dim = p.head_dim_v = draw.of<int64_t>({8, 16, 32});
  p.softmax_scale = default_softmax_scale(p.head_dim);
  const int64_t most = std::min<int64_t>(sizes.longest_row, 4096);
  p.seqlen_q = draw.between(1, 12);
  p.seqlen_kv = draw.between(most / 4, most);
  if (index == 0) {
    p.seqlen_q = 1;
    p.seqlen_kv = sizes.longest_row;
    p.head_dim = p.head_dim_v = 8;
    p.attend_current = p.op == Op::kStickBreaking;
  } else if (draw.coin(3)) {
    p.num_heads_q = 2;
    std::swap(p.seqlen_q, p.seqlen_kv);
    p.causal = p.op == Op::kStickBreaking;
    if (p.causal) p.seqlen_kv = p.seqlen_q = most / 8;
  }
  if (draw.coin(3)) set_logits(c, LogitFill::kSaturated, draw.magnitude(2, 9));
}

Case audit_case(Op op, Regime regime, uint32_t index, uint64_t seed, const AuditSizes& sizes) {
  Draw draw(seed, op, regime, index);
  Case c = any_case(draw, op, sizes);
  const auto any_value = [&] {
    return draw.of({ValueFill::kNormal, ValueFill::kConstant, ValueFill::kOneHot, ValueFill::kCancelling});
  };
  switch (regime) {
    case Regime::kNormal: break;
    case Regime::kSaturated:
      set_logits(c, draw.of({LogitFill::kSaturated, LogitFill::kNegative, LogitFill::kOneHot}), draw.magnitude(3, 18));
      c.values = any_value();
      break;
    case Regime::kExtreme:
      if (c.problem.dtype == Dtype::kFloat16) c.problem.dtype = Dtype::kBFloat16;  // fp16 cannot hold such keys
      set_logits(c, draw.of({LogitFill::kSaturated, LogitFill::kNegative, LogitFill::kOneHot}), draw.magnitude(17, 60));
      break;
    case Regime::kThreshold: set_threshold(c, draw, sizes); break;
    case Regime::kCancelling:
      set_logits(c, draw.of({LogitFill::kCancelling, LogitFill::kNormal}));
      c.values = ValueFill::kCancelling;
      break;
    case Regime::kEqual:
      set_logits(c, LogitFill::kEqual);
      c.values = any_value();
      break;
    case Regime::kSubnormal:
      set_logits(c, draw.of({LogitFill::kSubnormal, LogitFill::kNormal, LogitFill::kSaturated}), draw.magnitude(3, 9));
      c.values = ValueFill::kSubnormal;
      break;
    case Regime::kLarge: c.values = ValueFill::kLarge; break;
    case Regime::kMasked:
      c.padding = draw.of({KeyPadding::kRight, KeyPadding::kLeft, KeyPadding::kSome, KeyPadding::kSome, KeyPadding::kAll,
                           KeyPadding::kLeadingTile});
      set_logits(c, draw.of({LogitFill::kNormal, LogitFill::kSaturated, LogitFill::kCancelling}), draw.magnitude(3, 10));
      break;
    case Regime::kLong: set_long(c, draw, index, sizes); break;
  }
  return c;
}

}  // namespace

int64_t elements_of(const AttentionProblem& p) {
  return p.num_heads_q * p.seqlen_q * (p.head_dim + p.head_dim_v + 1) + p.seqlen_kv * (p.head_dim + p.head_dim_v);
}

std::vector<AuditCase> audit_cases(int64_t elements, uint64_t seed, const AuditSizes& sizes) {
  const auto ops = EnumSet<Op>::all().members();
  const auto regimes = EnumSet<Regime>::all().members();
  const int64_t parts = static_cast<int64_t>(ops.size() * regimes.size()), share = (elements + parts - 1) / parts;
  std::vector<AuditCase> cases;
  for (const Op op : ops)
    for (const Regime regime : regimes) {
      int64_t had = 0;
      for (uint32_t index = 0; had < share; ++index) {
        cases.push_back({regime, audit_case(op, regime, index, seed, sizes)});
        had += elements_of(cases.back().inputs.problem);
      }
    }
  return cases;
}

}  // namespace attest
