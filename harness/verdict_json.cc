#include "harness/verdict_json.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "harness/error.h"

namespace attest {
namespace {

using nlohmann::json;

json number(double x) {
  if (std::isfinite(x)) return x;
  return std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
}

double number(const json& j) {
  if (j.is_number()) return j.get<double>();
  const auto text = j.get<std::string>();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  throw Error("'" + text + "' is no number");
}

template <class E>
E enumerator(const json& j) {
  E e;
  if (!from_name(j.get<std::string>(), e)) throw Error(j.dump() + " is not known to this version");
  return e;
}

}  // namespace

void to_json(json& j, const Comparison& c) {
  j = json{{"outcome", name_of(c.outcome)},
           {"quantity", c.quantity},
           {"sentence", c.sentence},
           {"index", c.index},
           {"actual", number(c.actual)},
           {"expected", number(c.expected)},
           {"radius", number(c.radius)},
           {"actual_bits", c.actual_bits},
           {"expected_bits", c.expected_bits},
           {"bits_width", c.bits_width},
           {"error", number(c.error)},
           {"error_ulps", number(c.error_ulps)},
           {"bound", number(c.bound)},
           {"headroom", number(c.headroom)},
           {"elements", c.elements},
           {"failing", c.failing},
           {"vacuous", c.vacuous}};
}

void from_json(const json& j, Comparison& c) {
  c.outcome = enumerator<Comparison::Outcome>(j.at("outcome"));
  j.at("quantity").get_to(c.quantity);
  j.at("sentence").get_to(c.sentence);
  j.at("index").get_to(c.index);
  c.actual = number(j.at("actual"));
  c.expected = number(j.at("expected"));
  c.radius = number(j.at("radius"));
  j.at("actual_bits").get_to(c.actual_bits);
  j.at("expected_bits").get_to(c.expected_bits);
  j.at("bits_width").get_to(c.bits_width);
  c.error = number(j.at("error"));
  c.error_ulps = number(j.at("error_ulps"));
  c.bound = number(j.at("bound"));
  c.headroom = number(j.at("headroom"));
  j.at("elements").get_to(c.elements);
  j.at("failing").get_to(c.failing);
  j.at("vacuous").get_to(c.vacuous);
}

void to_json(json& j, const Verdict& v) {
  j = json{{"status", name_of(v.status)}, {"sentence", v.sentence}, {"comparisons", v.comparisons}};
}

void from_json(const json& j, Verdict& v) {
  v.status = enumerator<Status>(j.at("status"));
  j.at("sentence").get_to(v.sentence);
  j.at("comparisons").get_to(v.comparisons);
}

}  // namespace attest
