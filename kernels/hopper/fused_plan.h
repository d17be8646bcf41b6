// How the forward of a problem is cut into pieces of work. A function of shapes alone, and it moves time, never bits: all three
// kernels follow one contract.
#pragma once

#include "kernels/hopper/host_launch.h"

namespace attest::fused {

struct ForwardPlan {
  enum class Path : uint8_t {
    kWhole,   // a piece is a block of queries with all the keys that they see
    kSplit,   // … with a range of `range_segments` segments; then segments are combined
    kDecode,  // a piece is 16 rows of a KV head's group with one segment; then segments are combined
  };
  Path path = Path::kWhole;
  int segments = 1;
  int range_segments = 1;
};

/// `block_rows`: queries of a block of the forward kernel. Gradients need `dominant`, which only a whole row knows.
inline ForwardPlan forward_plan(const AttentionParams& p, int block_rows) {
  constexpr int64_t kMostDecodeRows = 64, kSegment = kSegmentTiles * kKeyTile;
  const int segments = static_cast<int>((p.seqlen_kv + kSegment - 1) / kSegment);
  if (p.backward() || p.num_rows() == 0) return {};
  if (p.seqlen_q * p.group() <= kMostDecodeRows) return {ForwardPlan::Path::kDecode, segments, 1};
  const int64_t blocks = p.batch * p.num_heads_q * ((p.seqlen_q + block_rows - 1) / block_rows);
  if (2 * blocks > kBlocks || segments == 1) return {};
  return {ForwardPlan::Path::kSplit, segments, static_cast<int>((segments * blocks + kBlocks - 1) / kBlocks)};
}

}  // namespace attest::fused
