// The two kernels of stickbreaking.cuda.fixed_order that work on rows, as code that a host can run too. A block takes 32
// rows and passes over their keys in tiles of 64: all threads turn logits into β and 1 − β, then thread r walks row r's tile in
// order, then all threads write. A hidden key stands as an exactly neutral entry: β = 0, 1 − β = 1, a = −0.
#pragma once

#include "kernels/device/fixed_order_math.h"
#include "kernels/stickbreaking/sticks_tile.h"

namespace attest::fixed_order {

/// logits → weights, and rem into lse. Keys from the nearest to the farthest: A = β·stick, then stick = stick·(1 − β).
template <class Block>
ATTEST_HOST_DEVICE void stick_rows(Block& block, const AttentionParams& p, SticksTile& tile, int64_t index) {
  const int64_t first = index * kStickRows;
  begin_sticks(block, p, tile, first, [](int64_t) { return 1.0F; });
  for (int64_t begin = (count_key_tiles(tile) - 1) * kStickKeys; begin >= 0; begin -= kStickKeys) {
    block.each([&](int thread, NoState&) {
      share_sticks(p, tile, first, begin, thread, [&](int r, int c, int64_t at, bool visible) {
        const Logistic part = visible ? logistic(p.logits[at]) : Logistic{0.0F, 1.0F};
        tile.beta[r][c] = part.beta;
        tile.rest[r][c] = part.rest;
      });
    });
    block.each([&](int r, NoState&) {
      if (r >= kStickRows) return;
      float stick = tile.carried[r];
      for (int c = kStickKeys - 1; c >= 0; --c) {
        tile.beta[r][c] = tile.beta[r][c] * stick;
        stick = stick * tile.rest[r][c];
      }
      tile.carried[r] = stick;
    });
    block.each([&](int thread, NoState&) {
      share_sticks(p, tile, first, begin, thread, [&](int r, int c, int64_t at, bool visible) {
        if (visible) p.weights[at] = tile.beta[r][c];
      });
    });
  }
  block.each([&](int r, NoState&) {
    if (r < kStickRows && first + r < p.num_rows()) of_row(p, p.lse, first + r) = tile.carried[r];
  });
}

/// dlogits: dP → dz. Keys from the farthest to the nearest, F = drem·rem at first: a = A·dP, dz = (1 − β)·a − β·F, F = F + a.
template <class Block>
ATTEST_HOST_DEVICE void stick_rows_backward(Block& block, const AttentionParams& p, SticksTile& tile, int64_t index) {
  const int64_t first = index * kStickRows;
  begin_sticks(block, p, tile, first, [&](int64_t row) {
    return p.dlse.data == nullptr ? 0.0F : of_row(p, p.dlse, row) * of_row(p, p.lse, row);
  });
  const int64_t end = count_key_tiles(tile) * kStickKeys;
  for (int64_t begin = 0; begin < end; begin += kStickKeys) {
    block.each([&](int thread, NoState&) {
      share_sticks(p, tile, first, begin, thread, [&](int r, int c, int64_t at, bool visible) {
        const Logistic part = visible ? logistic(p.logits[at]) : Logistic{0.0F, 1.0F};
        tile.beta[r][c] = part.beta;
        tile.rest[r][c] = part.rest;
        tile.a[r][c] = visible ? p.weights[at] * p.dlogits[at] : -0.0F;
      });
    });
    block.each([&](int r, NoState&) {
      if (r >= kStickRows) return;
      float farther = tile.carried[r];
      for (int c = 0; c < kStickKeys; ++c) {
        const float a = tile.a[r][c];
        tile.beta[r][c] = tile.rest[r][c] * a - tile.beta[r][c] * farther;
        farther = farther + a;
      }
      tile.carried[r] = farther;
    });
    block.each([&](int thread, NoState&) {
      share_sticks(p, tile, first, begin, thread, [&](int r, int c, int64_t at, bool visible) {
        if (visible) p.dlogits[at] = tile.beta[r][c];
      });
    });
  }
}

}  // namespace attest::fixed_order
