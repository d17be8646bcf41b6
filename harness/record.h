// What is kept of one counterexample: the content of a fixture file. fixtures/ reads and writes it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/case.h"
#include "harness/reference.h"
#include "harness/tensors.h"
#include "harness/verdict.h"

namespace attest {

struct Record {
  Inputs inputs;                        // exact bits, strides and offsets; on the CPU
  std::optional<Case> made_by;          // absent for a user's own data
  std::vector<std::string> edits;       // simplifications applied to the case's data since, see harness/edit.h
  std::string variant, property;        // empty for a user's own data
  std::string contract;                 // to_string of the tolerance, and its reason
  Verdict verdict;
  std::optional<Outputs> actual;        // absent when the kernel never returned
  std::optional<Reference> reference;
  std::map<std::string, std::string> provenance;  // attest_version, commit, libtorch, gpu, driver, campaign_seed, replay, …
};

}  // namespace attest
