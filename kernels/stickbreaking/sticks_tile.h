// The shared memory of fixed_order_rows.h: 32 rows by 64 keys, and who loads and stores what.
#pragma once

#include "kernels/device/attention_params.h"
#include "kernels/device/cooperative.h"

namespace attest::fixed_order {

inline constexpr int kStickRows = 32;
inline constexpr int kStickKeys = 64;

struct SticksTile {
  float beta[kStickRows][kStickKeys + 1];  // becomes A in the forward pass, dz in the backward pass
  float rest[kStickRows][kStickKeys + 1];
  float a[kStickRows][kStickKeys + 1];
  float carried[kStickRows];               // the stick, or F
  int64_t batch[kStickRows], keys[kStickRows];
};

ATTEST_HOST_DEVICE inline int64_t stick_blocks(const AttentionParams& p) { return (p.num_rows() + kStickRows - 1) / kStickRows; }

/// Where `row` stands in rem or its gradient.
template <class T>
ATTEST_HOST_DEVICE T& of_row(const AttentionParams& p, const View<T>& t, int64_t row) {
  return t.data[t.at(row / p.seqlen_q / p.num_heads_q, row / p.seqlen_q % p.num_heads_q, row % p.seqlen_q)];
}

/// Number of tiles that reach every visible key of the block's rows.
ATTEST_HOST_DEVICE inline int64_t count_key_tiles(const SticksTile& tile) {
  int64_t most = 0;
  for (const int64_t keys : tile.keys) most = keys > most ? keys : most;
  return (most + kStickKeys - 1) / kStickKeys;
}

/// `begin(row)` gives what the row carries at first. A row past the end sees no key.
template <class Block, class Begin>
ATTEST_HOST_DEVICE void begin_sticks(Block& block, const AttentionParams& p, SticksTile& tile, int64_t first, Begin begin) {
  block.each([&](int thread, NoState&) {
    if (thread >= kStickRows) return;
    const int64_t row = first + thread;
    const bool inside = row < p.num_rows();
    tile.batch[thread] = inside ? row / p.seqlen_q / p.num_heads_q : 0;
    tile.keys[thread] = inside ? p.visible_keys(row % p.seqlen_q) : 0;
    tile.carried[thread] = inside ? begin(row) : 0.0F;
  });
}

/// `visit(r, c, index, visible)` for this thread's share of the tile that begins at key `begin`; `index` into the workspace.
template <class Visit>
ATTEST_HOST_DEVICE void share_sticks(const AttentionParams& p, const SticksTile& tile, int64_t first, int64_t begin, int thread,
                                     Visit visit) {
  const int c = thread % kStickKeys;
  const int64_t key = begin + c;
  for (int r = thread / kStickKeys; r < kStickRows; r += kThreads / kStickKeys)
    visit(r, c, (first + r) * p.seqlen_kv + key, key < tile.keys[r] && p.kept(tile.batch[r], key));
}

}  // namespace attest::fixed_order
