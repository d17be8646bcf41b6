#include "tools/bench/result.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "build_info.h"
#include "harness/error.h"

namespace attest::bench {
namespace {

using nlohmann::json;

constexpr char kFormat[] = "attest bench 1";

template <class E>
E enum_at(const json& j, const char* key) {
  E e;
  const auto name = j.at(key).get<std::string>();
  if (!from_name(name, e)) throw Error(fmt::format("'{}' is no {} that this version knows", name, key));
  return e;
}

json encode_problem(const AttentionProblem& p) {
  return {{"op", name_of(p.op)},
          {"dtype", name_of(p.dtype)},
          {"batch", p.batch},
          {"num_heads_q", p.num_heads_q},
          {"num_heads_kv", p.num_heads_kv},
          {"seqlen_q", p.seqlen_q},
          {"seqlen_kv", p.seqlen_kv},
          {"head_dim", p.head_dim},
          {"head_dim_v", p.head_dim_v},
          {"causal", p.causal},
          {"attend_current", p.attend_current},
          {"softmax_scale", p.softmax_scale}};
}

AttentionProblem decode_problem(const json& j) {
  AttentionProblem p;
  p.op = enum_at<Op>(j, "op");
  p.dtype = enum_at<Dtype>(j, "dtype");
  for (auto [key, member] : {std::pair("batch", &p.batch),
                             {"num_heads_q", &p.num_heads_q},
                             {"num_heads_kv", &p.num_heads_kv},
                             {"seqlen_q", &p.seqlen_q},
                             {"seqlen_kv", &p.seqlen_kv},
                             {"head_dim", &p.head_dim},
                             {"head_dim_v", &p.head_dim_v}})
    j.at(key).get_to(*member);
  j.at("causal").get_to(p.causal);
  j.at("attend_current").get_to(p.attend_current);
  j.at("softmax_scale").get_to(p.softmax_scale);
  return p;
}

json encode_figures(const Figures& f) {
  json j{{"median_ms", f.median_ms}, {"p10_ms", f.p10_ms}, {"p90_ms", f.p90_ms}, {"repeats", f.repeats}};
  if (f.peak_bytes) j["peak_bytes"] = *f.peak_bytes;
  return j;
}

Figures decode_figures(const json& j) {
  Figures f{j.at("median_ms"), j.at("p10_ms"), j.at("p90_ms"), j.at("repeats"), {}};
  if (j.contains("peak_bytes")) f.peak_bytes = j.at("peak_bytes").get<int64_t>();
  return f;
}

json encode_row(const Row& r) {
  json j{{"case", r.bench_case.name},
         {"problem", encode_problem(r.bench_case.problem)},
         {"device", name_of(r.bench_case.device)},
         {"values", name_of(r.bench_case.values)},
         {"pass", name_of(r.pass)},
         {"variant", r.variant},
         {"outcome", name_of(r.outcome)}};
  if (r.outcome == Outcome::kMeasured) j["figures"] = encode_figures(r.figures);
  if (!r.sentence.empty()) j["sentence"] = r.sentence;
  return j;
}

Row decode(const json& j) {
  const Values values = j.contains("values") ? enum_at<Values>(j, "values") : Values::kNormal;  // older files have none
  Row r{{j.at("case"), decode_problem(j.at("problem")), enum_at<Device>(j, "device"), values},
        enum_at<Pass>(j, "pass"),
        j.at("variant"),
        enum_at<Outcome>(j, "outcome"),
        j.value("sentence", ""),
        {}};
  if (j.contains("figures")) r.figures = decode_figures(j.at("figures"));
  return r;
}

void add_derived(json& j, const Row& r, const std::optional<Roof>& roof) {
  const AttentionProblem& p = r.bench_case.problem;
  json& d = j["derived"] = {{"flops", flops(p, r.pass)}, {"bytes", bytes(p, r.pass)}};
  if (roof) d["floor_ms"] = floor_ms(p, r.pass, *roof);
  if (r.outcome != Outcome::kMeasured) return;
  d["flops_per_second"] = flops(p, r.pass) / (r.figures.median_ms * 1e-3);
  d["bytes_per_second"] = bytes(p, r.pass) / (r.figures.median_ms * 1e-3);
}

}  // namespace

std::string encode(const Row& row) { return encode_row(row).dump(); }

Row decode_row(const std::string& text) { return decode(json::parse(text)); }

std::string encode(const Results& r) {
  json j{{"format", kFormat}, {"gpu", r.gpu},         {"driver", r.driver},          {"commit", r.commit},
         {"date", r.date},    {"machine", r.machine}, {"kernels_sha256", r.kernels}, {"rows", json::array()}};
  if (r.roof) j["roof"] = {{"flops_per_second", r.roof->flops_per_second}, {"bytes_per_second", r.roof->bytes_per_second}};
  for (const Row& row : r.rows) {
    json& encoded = j["rows"].emplace_back(encode_row(row));
    add_derived(encoded, row, r.roof);
  }
  return j.dump(1) + "\n";
}

Results decode_results(const std::string& text) try {
  const json j = json::parse(text);
  if (j.at("format") != kFormat) throw Error("it was written by another version");
  Results r{j.at("gpu"), j.at("driver"), j.at("commit"), j.at("date"), j.at("machine"), {}, j.at("kernels_sha256"), {}};
  if (j.contains("roof")) r.roof = Roof{j["roof"].at("flops_per_second"), j["roof"].at("bytes_per_second")};
  for (const json& row : j.at("rows")) r.rows.push_back(decode(row));
  return r;
} catch (const json::exception&) {
  throw Error("this is no file of attest bench, or a damaged one");
}

std::string file_name(Op op, const Results& results) {
  std::string gpu;
  for (char c : results.gpu) gpu += std::isalnum(static_cast<unsigned char>(c)) != 0 ? static_cast<char>(std::tolower(c)) : '-';
  return fmt::format("{}-{}-{}.json", name_of(op), gpu, results.date);
}

Results only(Op op, const Results& results) {
  Results part = results;
  std::erase_if(part.rows, [op](const Row& row) { return row.bench_case.problem.op != op; });
  return part;
}

std::map<std::string, std::string> kernel_hashes() {
  std::map<std::string, std::string> hashes;
  for (const char* root : {kSourceDir, "."}) {  // where it was built; a checkout on another machine
    const std::string command = fmt::format("python3 '{}/tools/results_table' --hashes 2>/dev/null", root);
    std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "re"), pclose);
    std::array<char, 256> line{};
    while (pipe && fgets(line.data(), line.size(), pipe.get()) != nullptr) {
      std::istringstream words(line.data());
      std::string folder, hash;
      if (words >> folder >> hash) hashes[folder] = hash;
    }
    if (!hashes.empty()) break;
  }
  return hashes;
}

}  // namespace attest::bench
