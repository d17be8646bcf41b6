#include <fmt/format.h>

#include "tools/bench/result.h"

namespace attest::bench {
namespace {

std::string figures_text(const Row& row, const std::optional<Roof>& roof) {
  const AttentionProblem& p = row.bench_case.problem;
  const Figures& f = row.figures;
  const double seconds = f.median_ms * 1e-3;
  std::string text = fmt::format("{:>10.4f} {:>10.4f} {:>10.4f} {:>10.3f} {:>9.4f}", f.median_ms, f.p10_ms, f.p90_ms,
                                 flops(p, row.pass) / seconds * 1e-12, bytes(p, row.pass) / seconds * 1e-12);
  text += roof ? fmt::format(" {:>9.1f}", f.median_ms / floor_ms(p, row.pass, *roof)) : fmt::format(" {:>9}", "-");
  return text +
         (f.peak_bytes ? fmt::format(" {:>9.1f}", static_cast<double>(*f.peak_bytes) / (1 << 20)) : fmt::format(" {:>9}", "-"));
}

}  // namespace

std::string text_table(const std::vector<Row>& rows, const std::optional<Roof>& roof) {
  if (rows.empty()) return "";
  const BenchCase& c = rows.front().bench_case;
  const Pass pass = rows.front().pass;
  std::string text =
      fmt::format("{} {} {}   B={} Hq={} Hkv={} Sq={} Skv={} D={} Dv={} {}", name_of(c.problem.op), c.name, name_of(pass),
                  c.problem.batch, c.problem.num_heads_q, c.problem.num_heads_kv, c.problem.seqlen_q, c.problem.seqlen_kv,
                  c.problem.head_dim, c.problem.head_dim_v, name_of(c.problem.dtype));
  if (roof)
    text += fmt::format("   floor ({:g} TFLOP/s, {:g} TB/s) {:.4f} ms", roof->flops_per_second * 1e-12,
                        roof->bytes_per_second * 1e-12, floor_ms(c.problem, pass, *roof));
  text += fmt::format("\n  {:<36} {:>10} {:>10} {:>10} {:>10} {:>9} {:>9} {:>9}\n", "variant", "median ms", "10 %", "90 %",
                      "TFLOP/s", "TB/s", "x floor", "peak MiB");
  for (const Row& row : rows)
    text += fmt::format(
        "  {:<36} {}\n", row.variant,
        row.outcome == Outcome::kMeasured ? figures_text(row, roof) : fmt::format("{}: {}", name_of(row.outcome), row.sentence));
  return text;
}

}  // namespace attest::bench
