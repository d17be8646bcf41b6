#include "harness/draw_sizes.h"

#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

#include "harness/one_of.h"
#include "harness/smallest.h"

namespace attest {
namespace {

constexpr int64_t kUsualWork = int64_t{1} << 18;  // where the domain sets no limit

int64_t between(int64_t lo, int64_t hi) { return *rc::gen::inRange<int64_t>(lo, hi + 1); }

std::vector<int64_t> those_in(const Range& range, const std::vector<int64_t>& values) {
  std::vector<int64_t> in;
  std::ranges::copy_if(values, std::back_inserter(in), [&](int64_t x) { return range.contains(x); });
  return in;
}

/// t − 1, t, t + 1 and 2t + 1 for the tile sizes in play.
const std::vector<int64_t>& tile_edges() {
  static const std::vector<int64_t> edges = {15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 513, 1025, 2049};
  return edges;
}

int64_t nearly_log_uniform(const Range& range) {
  const int64_t width = range.hi - range.lo;
  const int64_t bits = between(0, static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(width))));
  return range.lo + between(0, std::min(width, (int64_t{1} << bits) - 1));
}

int64_t length(const Range& range) {
  const auto edges = those_in(range, tile_edges());
  switch (between(0, 9)) {
    case 0:
    case 1:
    case 2:
      return between(range.lo, std::min(range.hi, range.lo + 8));
    case 3:
      return nearly_log_uniform(range);
    default:
      break;
  }
  return edges.empty() ? nearly_log_uniform(range) : one_of(edges);
}

/// Sizes only grow from the smallest ones, and never beyond the budget: the problem is inside the domain at every moment.
class SizeDraw {
 public:
  SizeDraw(const CaseDomain& domain, AttentionProblem& p) : domain_(domain), p_(p), budget_(draw_budget()) {}

  /// Whatever is drawn first gets most of the budget: the lengths in more than half of the cases, else any.
  void run() {
    using Step = void (SizeDraw::*)();
    std::array<Step, 3> others = {&SizeDraw::draw_batch, &SizeDraw::draw_heads, &SizeDraw::draw_dims};
    std::swap(others[2], others[static_cast<size_t>(between(0, 2))]);
    const int64_t lengths_before = between(0, 1) != 0 ? 0 : between(0, 3);
    for (int64_t i = 0; i <= 3; ++i) {
      if (i == lengths_before) draw_lengths();
      if (i < 3) (this->*others[static_cast<size_t>(i)])();
    }
  }

 private:
  int64_t draw_budget() const {
    const int64_t least = p_.work();
    const bool limited = domain_.max_work != std::numeric_limits<int64_t>::max();
    const int64_t most = limited ? domain_.max_work : std::max(kUsualWork, least * 4);
    const std::vector<std::pair<int64_t, int64_t>> exponents = {{6, 11},  {12, 15}, {14, 16}, {14, 16},
                                                                {14, 17}, {15, 18}, {16, 18}};
    const int beyond = limited ? std::max(0, static_cast<int>(std::bit_width(static_cast<uint64_t>(most / kUsualWork))) - 1) : 0;
    const auto [lo, hi] = one_of(exponents);
    if (between(0, 19) == 0) return most;
    return std::clamp(int64_t{1} << between(lo, hi + std::min(beyond, 40)), std::min(least * 4, most), most);
  }

  /// The range of a size that now has the value `now`, cut to what the budget allows.
  Range affordable(const Range& range, int64_t now) const {
    return {now, std::max(now, std::min(range.hi, budget_ / (p_.work() / now)))};
  }

  void draw_lengths() {
    if (domain_.square_if_causal && p_.causal) return draw_square();
    const bool keys_first = domain_.queries_within_keys || between(0, 1) != 0;
    if (keys_first) draw_keys();
    draw_queries();
    if (!keys_first) draw_keys();
  }

  void draw_batch() {
    const Range range = affordable(domain_.batch, p_.batch);
    auto sizes = those_in(range, {1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4, 5, 8, 16, 17, 33});
    if (sizes.empty()) sizes = {range.lo, std::min(range.lo + 1, range.hi)};
    p_.batch = one_of(sizes);
  }

  void draw_heads() {
    const int64_t most = affordable(domain_.num_heads_q, p_.num_heads_q).hi;
    std::vector<std::pair<int64_t, int64_t>> fitting = {{p_.num_heads_kv, p_.group()}};
    for (const auto& [kv, group] : {std::pair<int64_t, int64_t>{1, 1},
                                    {1, 1},
                                    {1, 1},
                                    {1, 2},
                                    {1, 3},
                                    {2, 1},
                                    {2, 2},
                                    {2, 3},
                                    {2, 3},
                                    {3, 2},
                                    {3, 1},
                                    {1, 4},
                                    {4, 1},
                                    {5, 1},
                                    {2, 4},
                                    {4, 2},
                                    {1, 8},
                                    {8, 1},
                                    {8, 4}})
      if (domain_.num_heads_kv.contains(kv) && domain_.group.contains(group) && domain_.num_heads_q.contains(kv * group) &&
          kv * group <= most)
        fitting.emplace_back(kv, group);
    const auto [kv, group] = one_of(fitting);
    p_.num_heads_kv = kv;
    p_.num_heads_q = kv * group;
  }

  void draw_square() {
    const int64_t pairs = budget_ / (p_.work() / (p_.seqlen_q * p_.seqlen_kv));
    const auto longest = static_cast<int64_t>(std::sqrt(static_cast<double>(pairs)));
    const int64_t hi = std::min({domain_.seqlen_q.hi, domain_.seqlen_kv.hi, longest});
    p_.seqlen_q = p_.seqlen_kv = length({p_.seqlen_q, std::max(hi, p_.seqlen_q)});
  }

  void draw_keys() { p_.seqlen_kv = length(affordable(domain_.seqlen_kv, p_.seqlen_kv)); }

  void draw_queries() {
    Range range = affordable(domain_.seqlen_q, p_.seqlen_q);
    if (domain_.queries_within_keys) range.hi = std::min(range.hi, p_.seqlen_kv);
    const int64_t keys = p_.seqlen_kv;
    const auto related = those_in(range, {1, 1, keys, keys, keys, keys - 1, keys + 1, keys + 5, keys / 2});
    p_.seqlen_q = !related.empty() && between(0, 1) != 0 ? one_of(related) : length(range);
  }

  int64_t dim(const Range& range) {
    const int64_t multiple = domain_.head_dim_multiple;
    auto dims = those_in(range, {1, 2, 3, 8, 8, 16, 16, 24, 32, 40, 46, 50, 64, 64, 72, 80, 96, 128, 128, 192, 256});
    std::erase_if(dims, [&](int64_t d) { return d % multiple != 0; });
    if (dims.empty()) dims = {range.lo};
    return one_of(dims);
  }

  void draw_dims() {
    const int64_t both = budget_ / (p_.work() / (p_.head_dim + p_.head_dim_v));
    const bool equal = domain_.equal_head_dims;
    const Range range{p_.head_dim, std::max(p_.head_dim, std::min({domain_.head_dim.hi, both / 2, both - p_.head_dim_v}))};
    const int64_t hi = equal ? std::max(p_.head_dim, std::min(range.hi, domain_.head_dim_v.hi)) : range.hi;
    p_.head_dim = dim({range.lo, hi});
    const Range range_v{p_.head_dim_v, std::max(p_.head_dim_v, std::min(domain_.head_dim_v.hi, both - p_.head_dim))};
    const bool same = equal || (range_v.contains(p_.head_dim) && between(0, 3) != 0);
    p_.head_dim_v = same ? p_.head_dim : dim(range_v);
  }

  const CaseDomain& domain_;
  AttentionProblem& p_;
  int64_t budget_;
};

}  // namespace

void draw_sizes(const CaseDomain& domain, AttentionProblem& p) { SizeDraw(domain, p).run(); }

}  // namespace attest
