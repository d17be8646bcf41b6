// Verdict and Comparison ↔ JSON, without loss: numbers that JSON cannot hold are the strings "nan", "inf", "-inf".
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "harness/verdict.h"

namespace attest {

void to_json(nlohmann::json& j, const Comparison& c);
void from_json(const nlohmann::json& j, Comparison& c);
void to_json(nlohmann::json& j, const Verdict& v);
void from_json(const nlohmann::json& j, Verdict& v);

}  // namespace attest
