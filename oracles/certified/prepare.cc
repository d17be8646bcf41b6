#include "oracles/certified/prepare.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "harness/error.h"

namespace attest::certified {
namespace {

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/// [rows, width] → [padded / 16][rows][16].
void pack_panels(const double* rows, int64_t count, int64_t width, double* to) {
  for (int64_t begin = 0; begin < width; begin += kPanel)
    for (int64_t r = 0; r < count; ++r, to += kPanel) {
      const double* from = rows + r * width + begin;
      const int64_t columns = width - begin;
      if (columns >= kPanel) std::copy_n(from, kPanel, to);
      else for (int64_t n = 0; n < kPanel; ++n) to[n] = n < columns ? from[n] : 0;
    }
}
/// [rows, width] → [rows / 16][width][16].
void pack_columns(const double* rows, int64_t count, int64_t width, double* to) {
  for (int64_t begin = 0; begin < count; begin += kPanel)
    for (int64_t d = 0; d < width; ++d, to += kPanel)
      for (int64_t n = 0; n < kPanel; ++n) to[n] = rows[(begin + n) * width + d];
}

}  // namespace

void Preparation::Queries::pack(int64_t first, int64_t count) const {
  pack_panels(rows + first * width, count, width, panels + first * padded);
  pack_columns(rows + first * width, count, width, columns + first * width);
}

Preparation::Preparation(const Lanes& lanes, Tier tier, const GroupProblem& problem, GroupReference& reference)
    : lanes_(lanes), tier_(tier), problem_(problem) {
  work_.op = problem.op;
  work_.scale = problem.softmax_scale;
  work_.backward = problem.backward();
  work_.out = &reference;
  work_.terms = reference[Quantity::kOut].terms != nullptr;
  find_keys();
  find_rows();
  work_.k = keys_side(problem.k, problem.head_dim, "k");
  work_.v = keys_side(problem.v, problem.head_dim_v, "v");
  work_.q = queries_side(problem.q, problem.head_dim, "q");
  if (work_.terms) add_sizes(work_.v, work_.keys_padded);
  if (work_.terms) sum_before(work_.v);
  if (!work_.backward) return;
  work_.dout = queries_side(problem.dout, problem.head_dim_v, "dout");
  for (const auto& [sum, side] : {std::pair{&work_.dk, &work_.k}, std::pair{&work_.dv, &work_.v}}) {
    const int64_t size = work_.keys_padded * side->padded;
    sum->hi = arena_.take_zeros(size);
    sum->lo = tier_ == Tier::kDoubleDouble ? arena_.take_zeros(size) : nullptr;
    sum->bound = arena_.take_zeros(size);
  }
  if (work_.terms) prepare_terms();
}

// Sums over what is seen: keys before a tile, and rows that see a key.
void Preparation::prepare_terms() {
  sum_before(work_.k);
  double* seen_by = arena_.take_zeros(work_.keys_padded);
  for (int64_t row = 0; row < work_.rows; ++row)
    if (work_.count[row] > 0) ++seen_by[static_cast<int64_t>(work_.count[row]) - 1];
  for (int64_t j = work_.keys - 2; j >= 0; --j) seen_by[j] += seen_by[j + 1];
  work_.seen_by = seen_by;
  work_.dk.planes = kSumPlanes;
  work_.dv.planes = kWeightSumPlanes;
  add_sizes(work_.k, work_.keys_padded);
  for (const auto& [sum, side] : {std::pair{&work_.dk, &work_.q}, std::pair{&work_.dv, &work_.dout}}) {
    sum->terms = arena_.take_zeros(sum->planes * work_.keys_padded * side->padded);
    sum->seen = sum_seen(*side);
    add_sizes(*side, work_.rows_padded);
  }
}

void Preparation::add_sizes(Side& side, int64_t rows) {
  double* sizes = arena_.take(rows * side.padded);
  for (int64_t n = 0; n < rows * side.padded; ++n) sizes[n] = std::fabs(side.panels[n]);
  side.sizes = sizes;
}

void Preparation::sum_before(Side& side) {
  const int64_t tiles = work_.keys / kKeyTile + 1;
  double *sums = arena_.take_zeros(tiles * side.padded), *largest = arena_.take_zeros(tiles * side.padded);
  for (int64_t t = 1; t < tiles; ++t)
    for (int64_t d = 0; d < side.width; ++d) {
      const int64_t at = t * side.padded + d;
      sums[at] = sums[at - side.padded];
      largest[at] = largest[at - side.padded];
      for (int64_t j = (t - 1) * kKeyTile; j < t * kKeyTile; ++j) {
        sums[at] += std::fabs(side.rows[j * side.width + d]);
        largest[at] = std::max(largest[at], std::fabs(side.rows[j * side.width + d]));
      }
    }
  side.sums_before = sums;
  side.largest_before = largest;
}

const double* Preparation::sum_seen(const Side& side) {
  double* seen = arena_.take_zeros(work_.keys_padded * side.padded);
  for (int64_t row = 0; row < work_.rows; ++row) {
    if (work_.count[row] == 0) continue;
    double* last = seen + (static_cast<int64_t>(work_.count[row]) - 1) * side.padded;
    for (int64_t d = 0; d < side.width; ++d) last[d] += std::fabs(side.rows[row * side.width + d]);
  }
  for (int64_t at = (work_.keys - 1) * side.padded - 1; at >= 0; --at) seen[at] += seen[at + side.padded];
  return seen;
}

// Keys that no query may look at are left out: those that do not exist, and those beyond the reach of the last query.
void Preparation::find_keys() {
  const int64_t reach = problem_.n_q == 0 ? 0 : std::min(problem_.n_kv, problem_.keys_in_reach(problem_.n_q - 1));
  for (int64_t j = 0; j < reach; ++j)
    if (problem_.keep == nullptr || problem_.keep[j] != 0) key_from_.push_back(j);
  work_.keys = static_cast<int64_t>(key_from_.size());
  work_.keys_padded = round_up(work_.keys, 8);
}

void Preparation::find_rows() {
  work_.rows = problem_.rows();
  work_.block_rows = work_.rows <= 16 ? 16 : 32;
  work_.rows_padded = round_up(work_.rows, work_.block_rows);
  double *count = arena_.take_zeros(work_.rows_padded), *dlse = arena_.take_zeros(work_.rows_padded);
  row_from_.assign(work_.rows_padded, -1);
  for (int64_t row = 0; row < work_.rows; ++row) {
    const int64_t reach = problem_.keys_in_reach(row % problem_.n_q);
    count[row] = static_cast<double>(std::lower_bound(key_from_.begin(), key_from_.end(), reach) - key_from_.begin());
    if (count[row] == 0) continue;
    row_from_[row] = row;
    if (!problem_.backward() || problem_.dlse == nullptr) continue;
    dlse[row] = problem_.dlse[row];
    if (!std::isfinite(dlse[row])) throw UsageError("dlse or drem holds NaN or infinity in a row with visible keys");
  }
  work_.count = count;
  work_.dlse = dlse;
  work_.key_index = key_from_.data();
}

void Preparation::measure(Side& side, const std::vector<int64_t>& from, int64_t tile, const char* name) {
  const auto rows = static_cast<int64_t>(from.size());
  double *norms = arena_.take_zeros(rows), *spans = arena_.take_zeros(rows / tile + 1), *sums = arena_.take_zeros(side.padded);
  for (int64_t r = 0; r < rows; ++r) {
    if (from[r] < 0) continue;
    const double* x = side.rows + r * side.width;
    const Measure m = lanes_.measure_row(x, side.width, problem_.significand_bits, sums);
    if (!std::isfinite(m.norm)) throw UsageError(std::string(name) + " holds NaN or infinity in row " + std::to_string(from[r]));
    if (!m.narrow) throw UsageError(std::string(name) + " holds a number of more bits than its dtype has");
    norms[r] = m.norm;
    spans[r / tile] = std::max(spans[r / tile], m.span);
    side.largest_norm = std::max(side.largest_norm, m.norm);
  }
  side.norms = norms;
  side.spans = spans;
  side.sums = sums;
}

namespace {

/// The source itself where it has all rows in order.
const double* gather_rows(Arena& arena, const double* source, const std::vector<int64_t>& from, int64_t padded, int64_t width) {
  bool same = static_cast<int64_t>(from.size()) == padded;
  for (int64_t r = 0; same && r < padded; ++r) same = from[r] == r;
  if (same) return source;
  double* rows = arena.take(padded * width);
  for (int64_t r = 0; r < padded; ++r) {
    const int64_t row = r < static_cast<int64_t>(from.size()) ? from[r] : -1;
    if (row < 0) std::fill_n(rows + r * width, width, 0.0);
    else std::copy_n(source + row * width, width, rows + r * width);
  }
  return rows;
}

}  // namespace

Side Preparation::keys_side(const double* source, int64_t width, const char* name) {
  Side side;
  side.width = width;
  side.padded = round_up(width, kPanel);
  side.rows = gather_rows(arena_, source, key_from_, work_.keys_padded, width);
  measure(side, key_from_, kKeyTile, name);
  double* panels = arena_.take(work_.keys_padded * side.padded);
  pack_panels(side.rows, work_.keys_padded, width, panels);
  side.panels = panels;
  return side;
}

Side Preparation::queries_side(const double* source, int64_t width, const char* name) {
  Side side;
  side.width = width;
  side.padded = round_up(width, kPanel);
  side.rows = gather_rows(arena_, source, row_from_, work_.rows_padded, width);
  measure(side, row_from_, work_.block_rows, name);
  double *panels = arena_.take(work_.rows_padded * side.padded), *columns = arena_.take(work_.rows_padded * width);
  side.panels = panels;
  side.columns = columns;
  queries_.push_back({side.rows, width, side.padded, panels, columns});
  if (work_.terms)  // which ask for all rows at once
    for (int64_t first = 0; first < work_.rows_padded; first += work_.block_rows) queries_.back().pack(first, work_.block_rows);
  return side;
}

Block Preparation::new_block() {
  const int64_t plane = work_.keys_padded * work_.block_rows;
  const int64_t sum = work_.block_rows * std::max(work_.k.padded, work_.v.padded);
  const bool pair = tier_ == Tier::kDoubleDouble, stick = work_.op == Op::kStickBreaking;
  const auto low = [&](bool needed) { return pair && needed ? arena_.take(plane) : nullptr; };
  Block b;
  b.w_hi = arena_.take(plane);
  b.w_lo = arena_.take(plane);
  b.sum_hi = arena_.take(sum);
  b.sum_lo = pair ? arena_.take(sum) : nullptr;
  b.sum_bound = arena_.take(sum);
  b.top = arena_.take_zeros(work_.block_rows);
  b.lse = arena_.take_zeros(work_.block_rows);
  b.flush = arena_.take_zeros(work_.block_rows);
  b.rem_dot = arena_.take_zeros(work_.block_rows);
  b.rem_unit = arena_.take_zeros(work_.block_rows);
  b.rem_hi = arena_.take_zeros(work_.block_rows);
  b.rem_lo = arena_.take_zeros(work_.block_rows);
  if (stick) {
    b.beta_hi = arena_.take(plane);
    b.rest_hi = arena_.take(plane);
    b.beta_lo = low(true);
    b.rest_lo = low(true);
  }
  if (work_.terms) {
    b.terms = arena_.take(kTermPlanes * plane);
    b.term_sums = arena_.take(kSumPlanes * sum);
  }
  if (!work_.backward) return b;
  b.dz_hi = arena_.take(plane);
  b.dz_lo = low(true);
  b.dz_bound = pair ? arena_.take(plane) : b.w_lo;  // tier 0 needs w_lo for the logits alone
  return b;
}

void Preparation::start(Block& b, int64_t index) const {
  b.first = index * work_.block_rows;
  if (!work_.terms)
    for (const Queries& side : queries_) side.pack(b.first, work_.block_rows);
  const double* count = work_.count + b.first;
  b.keys = static_cast<int64_t>(*std::max_element(count, count + work_.block_rows));
  b.keys_padded = round_up(b.keys, 8);
}

}  // namespace attest::certified
