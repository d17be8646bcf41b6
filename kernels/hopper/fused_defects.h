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
  kRescaleOfTileBefore,   // a tile without a visible key is rescaled as the one before it was
  kSegmentsByBatch,       // segments of keys are longer where there are several batch elements
  // Of stick-breaking.
  kOneMinusBeta,          // 1 − β is a difference
  kTotalMinusNear,        // what farther keys are worth is that of all without that of nearer ones
  kSumIn16Bits,           // what farther keys are worth is summed in 16 bits
  kSuffixWithKeyItself,   // what farther keys are worth includes the key
  kScanFromFarEnd,        // a lane's keys get what is left by lanes with farther keys
  kRemainderDropped,      // the gradient of the remainder is left out
  kStopOneTileEarly,      // the farthest tile may be left out though the stick is not used up
  kStopOnThreshold,       // a stick of 2^-24 counts as used up
  kSnapshotOfOtherTile,   // the sticks saved for the two halves of a tile are exchanged
  kSnapshotsNeverWritten, // sticks of tiles that the forward did not visit are read
};
#ifdef ATTEST_DEFECT
constexpr Defect kDefect = Defect::ATTEST_DEFECT;
#else
constexpr Defect kDefect = Defect::kNone;
#endif

}  // namespace attest::fused
