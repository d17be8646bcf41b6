// The audit of certified tiers: many cases of every regime, every element against an enclosure at ≥ 1000 bits.
#pragma once

#include <functional>
#include <map>
#include <tuple>

#include "oracles/audit/judge.h"
#include "oracles/audit/regimes.h"

namespace attest {

struct AuditPlan {
  int64_t elements = 10'000'000;  // at least, of the problems; every tier is held to each
  uint64_t seed = 1;
  int jobs = 1;                   // threads; the result is the same for any number
  int bits = 1024;                // of the enclosures
  AuditSizes sizes;
  std::vector<AuditTier> tiers;
};

struct AuditKey {
  Op op = Op::kSoftmax;
  std::string tier;
  Regime regime = Regime::kNormal;
  Quantity quantity = Quantity::kOut;
  auto operator<=>(const AuditKey&) const = default;
};

struct AuditFinding {
  Case inputs;
  AuditMiss miss;
};

struct AuditResult {
  std::map<AuditKey, AuditCell> cells;
  std::vector<AuditFinding> findings;  // in the order of the cases
  int64_t cases = 0, elements = 0;
  bool sound() const { return findings.empty(); }
};

/// `progress` hears of the elements done, from any thread, one call at a time.
AuditResult audit(const AuditPlan& plan, const std::function<void(int64_t)>& progress = {});

}  // namespace attest
