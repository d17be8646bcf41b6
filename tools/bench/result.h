// What was measured: rows, and the JSON file that keeps them (described in reports/results/README.md).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/bench/cases.h"
#include "tools/bench/flops.h"

namespace attest::bench {

/// kCrashed: the process ended during the run.
enum class Outcome : uint8_t { kMeasured, kUnsupported, kOutOfMemory, kLaunchError, kCrashed };

struct Figures {
  double median_ms = 0, p10_ms = 0, p90_ms = 0;
  int64_t repeats = 0;
  std::optional<int64_t> peak_bytes;  // above the inputs: outputs, workspace, what the backward keeps

  bool operator==(const Figures&) const = default;
};

/// One variant on one case and pass.
struct Row {
  BenchCase bench_case;
  Pass pass = Pass::kForward;
  std::string variant;
  Outcome outcome = Outcome::kMeasured;
  std::string sentence;  // why it was not measured
  Figures figures;       // when it was

  bool operator==(const Row&) const = default;
};

/// One session of measuring.
struct Results {
  std::string gpu, driver, commit, date;       // gpu is "cpu" for CPU variants; date as 2026-01-31
  std::map<std::string, std::string> machine;  // versions
  std::optional<Roof> roof;
  std::map<std::string, std::string> kernels;  // see kernel_hashes
  std::vector<Row> rows;

  bool operator==(const Results&) const = default;
};

std::string encode(const Row& row);
Row decode_row(const std::string& json);
/// Derived figures (FLOPs, bytes, floor and the achieved rates) are written too, for readers; decoding ignores them.
std::string encode(const Results& results);
/// Throws Error when it is no such file.
Results decode_results(const std::string& json);

/// softmax-nvidia-h200-2026-01-31.json
std::string file_name(Op op, const Results& results);
/// The rows of one operator.
Results only(Op op, const Results& results);

/// Folder of kernels → hash over the names and contents of its files, computed by tools/results_table so that it is the same
/// later; empty when that is not possible here.
std::map<std::string, std::string> kernel_hashes();

/// The rows as a table for a terminal; they have one case and pass.
std::string text_table(const std::vector<Row>& rows, const std::optional<Roof>& roof);

}  // namespace attest::bench

namespace attest {
template <>
struct EnumNames<bench::Outcome> {
  static constexpr std::string_view kNames[] = {"measured", "unsupported", "out of memory", "launch error", "crashed"};
};
}  // namespace attest
