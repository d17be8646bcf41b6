// A prepared problem, and what the lane kernels do with it. Plain data: these types are compiled for several machines.
#pragma once

#include <cstdint>

#include "harness/contract.h"
#include "oracles/group_problem.h"

namespace attest::certified {

inline constexpr int64_t kPanel = 16;      // columns of a packed panel; widths are padded to a multiple, with zeros
inline constexpr int64_t kKeyTile = 32;    // keys of one exactness test, and of one step over dk and dv
inline constexpr int64_t kKeyBlock = 128;  // keys summed at once into out and dq

/// One side of the products over head_dim, or head_dim_v. A product of rows a and b is exact in double if
/// span(a) · span(b) ≤ 2^53, span = |row| / 2^(lowest bit of the row).
struct Side {
  const double* rows = nullptr;    // keys: [keys_padded, width]
  const double* columns = nullptr; // queries: per block, [block_rows / 16][width][16], that is transposed
  const double* panels = nullptr;  // keys: [padded / 16][keys_padded][16]; queries: per block, [padded / 16][block_rows][16]
  const double* norms = nullptr;   // [rows] |row|, rounded up
  const double* spans = nullptr;   // the largest per tile of keys, or per block of queries
  const double* sums = nullptr;    // [padded] Σ over rows of |x|
  double largest_norm = 0;
  int64_t width = 0, padded = 0;
  // Only for terms.
  const double* sizes = nullptr;  // like panels, |x|
  const double *sums_before = nullptr, *largest_before = nullptr;  // keys: [keys / 32 + 1, padded], of |x| over the keys before 32 t
};

/// A gradient of k or v in the making: [keys_padded, padded].
struct Sum {
  double *hi = nullptr, *lo = nullptr, *bound = nullptr;
  double* terms = nullptr;        // [planes of SumPlane, keys_padded, padded]
  int planes = 0;
  const double* seen = nullptr;   // [keys_padded, padded] Σ |x| over the rows that see the key
};

/// Sums of error terms over planes of a block: of dz for dq and dk, of the weights for out and dv.
enum SumPlane { kOfSize, kOfDotQk, kOfUnit, kOfLse, kWeightSumPlanes, kOfDotV = kWeightSumPlanes, kOfSumKv, kOfTrivial, kSumPlanes };
/// Planes of a block that only the terms need.
enum TermPlane { kLogit, kLogitDot, kDpDot, kWeightDotQk, kWeightUnit, kWeightLse, kDzDotQk, kDzUnit, kDzLse, kDzDotV, kDzSumKv,
                 kDzTrivial, kTermPlanes };

/// Only keys that exist are here, numbered anew, and rows see a prefix of them: key j is visible to row i iff j < count[i].
/// Rows without visible key are zeros. A row is (head of the group, query).
struct Work {
  Op op = Op::kSoftmax;
  int64_t rows = 0, rows_padded = 0, block_rows = 0;  // block_rows is 16 or 32
  int64_t keys = 0, keys_padded = 0;                  // padded to a multiple of 8
  double scale = 1;
  bool backward = false, terms = false;
  Side q, k, v, dout;
  const double* count = nullptr;       // [rows_padded]
  const double* dlse = nullptr;        // [rows_padded]
  const int64_t* key_index = nullptr;  // [keys] where a key stands in the problem
  const double* seen_by = nullptr;     // [keys] rows that see the key; only for terms
  Sum dk, dv;
  GroupReference* out = nullptr;

  int64_t blocks() const { return rows_padded / block_rows; }
};

/// One block of rows at work: [keys_padded, block_rows] each.
struct Block {
  int64_t first = 0;               // row
  int64_t keys = 0, keys_padded = 0;  // the most that a row of the block sees
  // The weight W = P or A of key j has an error ≤ (weight_error + weight_step · (keys − j)) · W + weight_floor.
  double weight_error = 0, weight_step = 0, weight_floor = 0;
  double *w_hi = nullptr, *w_lo = nullptr;        // q·k, then the weights
  double *dz_hi = nullptr, *dz_lo = nullptr;      // dout·v, then dz
  double* dz_bound = nullptr;
  double* top = nullptr;                                  // softmax: [block_rows] the key whose dP is subtracted
  double *rem_hi = nullptr, *rem_lo = nullptr;            // stick-breaking: [block_rows] what is left of the stick
  double *beta_hi = nullptr, *beta_lo = nullptr, *rest_hi = nullptr, *rest_lo = nullptr;  // stick-breaking
  double *sum_hi = nullptr, *sum_lo = nullptr, *sum_bound = nullptr;  // [block_rows, padded]
  double *lse = nullptr, *flush = nullptr;  // [block_rows] lse or rem, and e^(m − lse) or 1
  double *rem_dot = nullptr, *rem_unit = nullptr;  // stick-breaking: [block_rows] error terms of rem
  double* terms = nullptr;                  // [TermPlane, keys_padded of the work, block_rows]
  double* term_sums = nullptr;              // [SumPlane, block_rows, padded]
};

/// The three kernels of one arithmetic.
struct LaneKernels {
  void (*rows)(const Work&, Block&);  // out, lse, dq of the rows of a block; fills the block for `keys`
  void (*keys)(const Work&, const Block&, int64_t begin, int64_t end);  // adds a block to dk, dv of a range of keys
  void (*finish)(const Work&, int64_t begin, int64_t end);              // writes dk, dv of a range of keys
};
enum class Tier : uint8_t { kDouble, kDoubleDouble, kPlain };
struct OperatorKernels {
  LaneKernels of[3];  // by Tier
};
/// Of a row.
struct Measure {
  double norm = 0, span = 0;  // see Side
  bool narrow = true;         // no element has more significant bits than promised
};
struct Lanes {
  const char* name;
  OperatorKernels of[2];  // by Op
  /// Of n elements of `bits` significant bits each; adds |x| to `sums` [n, rounded up to 8].
  Measure (*measure_row)(const double* x, int64_t n, int bits, double* sums);
};
const Lanes& avx2_lanes();
const Lanes& avx512_lanes();

/// Evaluates with given lanes; the public functions choose them by the CPU.
void evaluate_with(const Lanes& lanes, Tier tier, const GroupProblem& problem, GroupReference& reference, int threads);

}  // namespace attest::certified
