// The defects that kernels/hopper/faulty/ compiles into the fused kernels: a twin defines ATTEST_DEFECT as one of these and includes
// the kernel's own source. Elsewhere there is none, and the switches leave no trace in the program.
#pragma once

namespace attest::fused {

enum class Defect {
  kNone,
  kDominantIgnored,       // no row has a dominant key
  kEmptyTileUnguarded,    // a tile without a visible key is taken for one with the largest logit −∞
  kNeighboursReference,   // a row's reference rises when that of another row of the warp does
  kRescaleByOneRow,       // whether sums are rescaled is asked of one row for all of a warp
  kSumNotNormalised,      // sigma is not divided by the sum of the weights it was made with
  kTilesByBlock,          // every other block of the forward takes the tiles of keys from the farthest to the nearest
  kTailWeights,           // columns of the last tile that are past the last key have weight in the backward
  kWeightsIn8Bits,        // weights keep 3 bits after the leading one
};
#ifdef ATTEST_DEFECT
constexpr Defect kDefect = Defect::ATTEST_DEFECT;
#else
constexpr Defect kDefect = Defect::kNone;
#endif

}  // namespace attest::fused
