#include "tools/bench/oracles.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "oracles/certified/work.h"
#include "oracles/group_data.h"
#include "tools/bench/oracle_scalar.h"
#include "tools/bench/timer.h"

namespace attest::bench {
namespace {

using certified::Lanes;
using certified::Tier;

bool runs_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool runs_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd");
}

double seconds_of(const std::function<void()>& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

GroupData data_of(Op op, int64_t seqlen, int64_t head_dim) {
  const bool stick = op == Op::kStickBreaking;
  Case c;
  c.problem = {.op = op, .dtype = Dtype::kBFloat16, .seqlen_q = seqlen, .seqlen_kv = seqlen, .head_dim = head_dim,
               .head_dim_v = head_dim, .causal = stick, .attend_current = stick};
  c.problem.softmax_scale = default_softmax_scale(head_dim);
  c.seed = 1;
  return group_data(c);
}

struct Measured {
  OracleRow row;
  std::function<double()> once;  // seconds; null when absent
  int repeats = 1;
  int in_a_row = 1;  // evaluations whose mean is one sample
};
constexpr double kSampleSeconds = 0.04;

class Problem {
 public:
  Problem(Op op, int64_t seqlen, int64_t head_dim, const OracleBenchPlan& plan)
      : plan_(plan), data_(data_of(op, seqlen, head_dim)), problem_(data_.problem()), values_(problem_),
        head_{op, seqlen, head_dim} {}

  std::vector<OracleRow> run() {
    add_lanes(certified::avx512_lanes(), runs_avx512() ? "" : "this CPU has no AVX-512");
    add_lanes(certified::avx2_lanes(), runs_avx2() ? "" : "this CPU has no AVX2 or no FMA");
    if (plan_.slow) add_slow();
    return measure();
  }

 private:
  void add(const std::string& arithmetic, const std::string& lanes, int threads, int repeats, std::function<double()> once) {
    OracleRow row = head_;
    row.arithmetic = arithmetic;
    row.lanes = lanes;
    row.threads = threads;
    todo_.push_back({row, std::move(once), repeats});
  }

  void add_lanes(const Lanes& lanes, const std::string& absent) {
    const std::pair<const char*, Tier> tiers[] = {
        {"plain double", Tier::kPlain}, {"double", Tier::kDouble}, {"double-double", Tier::kDoubleDouble}};
    for (const auto& [name, tier] : tiers)
      for (const int threads : {1, 2}) {
        if (tier == Tier::kPlain && threads == 2) continue;
        add(name, lanes.name, threads, plan_.repeats, [this, &lanes, tier = tier, threads] {
          GroupReference reference = values_.reference(tier == Tier::kDoubleDouble);
          return seconds_of([&] { certified::evaluate_with(lanes, tier, problem_, reference, threads); });
        });
        if (!absent.empty()) set_absent(absent);
      }
  }

  void add_slow() {
    for (const int bits : {128, 256}) {
      add(fmt::format("balls {}", bits), "", 1, 1, [this, bits] {
        GroupReference reference = values_.reference();
        return seconds_of([&] { evaluate_balls(problem_, reference, bits); });
      });
      if (const auto reason = balls_unavailable()) set_absent(*reason);
    }
    const int64_t n = problem_.n_q;
    const std::vector<int64_t> rows = {n / 8, 3 * n / 8, 5 * n / 8, 7 * n / 8};  // as many keys as all rows on average
    const double factor = static_cast<double>(n) / static_cast<double>(rows.size());
    add("cpp_bin_float_50", "", 1, 1, [=, this] { return factor * seconds_in_cpp_bin_float_50(problem_, rows); });
    todo_.back().row.extrapolated = true;
    add("mpfr_float_50", "", 1, 1, [=, this] { return factor * seconds_in_mpfr_float_50(problem_, rows).value(); });
    todo_.back().row.extrapolated = true;
    if (!seconds_in_mpfr_float_50(problem_, {})) set_absent("Attest was built without MPFR: install libmpfr-dev");
  }

  void set_absent(const std::string& why) {
    todo_.back().row.absent = why;
    todo_.back().once = nullptr;
  }

  std::vector<OracleRow> measure() {
    std::vector<std::vector<double>> samples(todo_.size());
    for (int round = 0; round <= plan_.repeats; ++round)
      for (size_t n = 0; n < todo_.size(); ++n) {
        Measured& m = todo_[n];
        const bool once = m.repeats == 1;
        if (m.once == nullptr || (once && round > 0)) continue;
        const double seconds = mean_of(m);
        if (once || round > 0) samples[n].push_back(seconds);
        else m.in_a_row = static_cast<int>(std::ceil(kSampleSeconds / seconds));  // the first round only warms up
      }
    std::vector<OracleRow> rows;
    for (size_t n = 0; n < todo_.size(); ++n) {
      OracleRow& row = rows.emplace_back(todo_[n].row);
      if (!samples[n].empty()) row.seconds = percentile(samples[n], 0.5);
    }
    for (OracleRow& row : rows) row.over_plain = row.seconds / plain_seconds(rows, row.lanes);
    return rows;
  }

  static double mean_of(const Measured& m) {
    double sum = 0;
    for (int n = 0; n < m.in_a_row; ++n) sum += m.once();
    return sum / m.in_a_row;
  }

  /// Of plain double with these lanes; with any, where none are named.
  static double plain_seconds(const std::vector<OracleRow>& rows, const std::string& lanes) {
    for (const OracleRow& row : rows)
      if (row.arithmetic == "plain double" && row.seconds > 0 && (lanes.empty() || row.lanes == lanes)) return row.seconds;
    return std::numeric_limits<double>::infinity();
  }

  const OracleBenchPlan& plan_;
  const GroupData data_;
  const GroupProblem problem_;
  GroupValues values_;
  const OracleRow head_;
  std::vector<Measured> todo_;
};

}  // namespace

std::vector<OracleRow> bench_oracles(const OracleBenchPlan& plan,
                                     const std::function<void(const std::vector<OracleRow>&)>& done) {
  constexpr std::pair<int64_t, int64_t> kSizes[] = {{256, 64}, {1024, 128}, {128, 64}};
  std::vector<OracleRow> all;
  for (const Op op : EnumSet<Op>::all().members())
    for (const auto& [seqlen, head_dim] : kSizes) {
      const std::vector<OracleRow> rows = Problem(op, seqlen, head_dim, plan).run();
      done(rows);
      all.insert(all.end(), rows.begin(), rows.end());
    }
  return all;
}

}  // namespace attest::bench
