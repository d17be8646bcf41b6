#include "harness/plan.h"

#include <algorithm>
#include <set>

#include "harness/error.h"
#include "harness/generate.h"
#include "harness/oracle.h"

namespace attest {
namespace {

template <class T>
const T& registered(const std::string& name, const char* what) {
  const T* record = Registry<T>::instance().find(name);
  if (record == nullptr) throw UsageError("there is no " + std::string(what) + " called '" + name + "'; see attest list");
  return *record;
}

}  // namespace

Plan::Plan(const CampaignOptions& options, bool has_gpu) : options_(options) {
  add_cells(has_gpu);
  add_focuses();
  const int64_t fixtures = static_cast<int64_t>(options_.fixtures.size());
  if (options_.only)
    size_ = fixtures + 1;
  else if (options_.budget && !ops_.empty())
    size_ = std::numeric_limits<int64_t>::max();
  else
    size_ = fixtures + options_.cases * static_cast<int64_t>(ops_.size());
}

void Plan::add_cells(bool has_gpu) {
  std::vector<const Property*> properties;
  for (const std::string& name : options_.properties) properties.push_back(&registered<Property>(name, "property"));
  std::stable_sort(properties.begin(), properties.end(),
                   [](const Property* a, const Property* b) { return (a->name == "returns") > (b->name == "returns"); });
  for (const std::string& name : options_.variants) {
    const KernelVariant& variant = registered<KernelVariant>(name, "variant");
    for (const Property* property : properties) {
      CaseDomain op_only = every_case();
      op_only.ops = {variant.op};
      PlannedCell planned{{variant.name, property->name}, &variant, property, variant.domain & property->domain & op_only, {}};
      planned.impossible = (planned.domain & options_.domain & affordable(variant.op)).empty_reason();
      if ((variant.produces & property->judges).empty()) planned.impossible = "the variant gives nothing that this law judges";
      if (variant.device == Device::kCuda && !has_gpu) planned.impossible = "needs a GPU";
      needs_cuda_ = needs_cuda_ || (variant.device == Device::kCuda && has_gpu);
      cells_.push_back(std::move(planned));
    }
  }
}

/// Generated cases are kept to what some oracle of the operator affords.
CaseDomain Plan::affordable(Op op) const {
  CaseDomain domain;
  domain.ops = {op};
  domain.sequences = {};
  int64_t most = 0;
  for (const Oracle* oracle : Registry<Oracle>::instance().all())
    if (oracle->domain.ops.contains(op)) {
      most = std::max(most, oracle->domain.max_work);
      domain.sequences = domain.sequences | oracle->domain.sequences;
    }
  if (most > 0) domain.max_work = most;
  if (domain.sequences.empty()) domain.sequences = EnumSet<Sequences>::all();
  return domain;
}

/// Cases are drawn inside one property's domain after the other, so that every law meets cases it can say something about;
/// and, when variants were named, inside each of those too. Registered variants that were not named change no case.
void Plan::add_focuses() {
  for (Op op : {Op::kSoftmax, Op::kStickBreaking}) {
    std::vector<CaseDomain> focuses;
    std::set<std::string> seen;
    for (const PlannedCell& planned : cells_) {
      const bool possible = !planned.impossible || *planned.impossible == "needs a GPU";
      if (planned.variant->op != op || !possible) continue;
      if (!seen.insert(planned.cell.property + (options_.rotate_variants ? planned.cell.variant : "")).second) continue;
      CaseDomain focus = planned.property->domain & options_.domain & affordable(op);
      if (options_.rotate_variants) focus = focus & planned.variant->domain;
      if (!focus.empty_reason()) focuses.push_back(focus);
    }
    if (focuses.empty()) continue;
    ops_.push_back(op);
    focuses_[op] = std::move(focuses);
  }
}

Source Plan::source(int64_t number) const {
  const int64_t fixtures = static_cast<int64_t>(options_.fixtures.size());
  if (number < fixtures) return {std::nullopt, options_.fixtures[static_cast<size_t>(number)], {}};
  if (options_.only) return {options_.only, "", {}};
  const int64_t generated = number - fixtures;
  const int64_t num_ops = static_cast<int64_t>(ops_.size());
  const Op op = ops_[static_cast<size_t>(generated % num_ops)];
  const int64_t index = generated / num_ops;
  const std::vector<CaseDomain>& focuses = focuses_.at(op);
  return {generate(options_.seed, static_cast<uint64_t>(index), focuses[static_cast<size_t>(index) % focuses.size()]), "", {}};
}

std::vector<size_t> Plan::cells_for(const Source& source) const {
  std::vector<size_t> out;
  for (size_t i = 0; i < cells_.size(); ++i) {
    if (cells_[i].impossible) continue;
    if (!source.made_by || !cells_[i].domain.excludes(*source.made_by)) out.push_back(i);
  }
  return out;
}

}  // namespace attest
