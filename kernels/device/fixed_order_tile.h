// One tile of a product Σ_t left(row, t)·right(t, column), summed in ascending t by the one thread that owns the element: from
// +0, a product and then an addition. Operands pass through shared memory; no sum is ever split. A masked product leaves terms
// out. A term of an unmasked product past the end is +0·+0, which changes no bit of a sum that began at +0.
#pragma once

#include <cstdint>
#include <utility>

#include "kernels/device/tile_layout.h"

namespace attest::fixed_order {

/// `step(0)`, `step(1)`, … written out one after another: a pragma would do, but host compilers do not know it.
template <int... kSteps, class Step>
ATTEST_HOST_DEVICE void unrolled(std::integer_sequence<int, kSteps...>, Step step) {
  (step(kSteps), ...);
}

/// `visit(outer, t)` for this thread's share of a [kTile × kTileDepth] operand, neighbours in memory by neighbouring threads.
template <bool kAlongDepth, class Visit>
ATTEST_HOST_DEVICE void share_operand(int thread, Visit visit) {
  constexpr int kInner = kAlongDepth ? kTileDepth : kTile;
  const int inner = thread % kInner, first = thread / kInner;
  unrolled(std::make_integer_sequence<int, kTile * kTileDepth / kThreads>(), [&](int step) {
    const int outer = first + step * (kThreads / kInner);
    kAlongDepth ? visit(outer, inner) : visit(inner, outer);
  });
}

template <class Product>
ATTEST_HOST_DEVICE void load_tile(const Product& product, const TileAt& at, int64_t pass, DepthRange depth, int thread,
                                  ProductTile& tile) {
  share_operand<Product::kLeftAlongDepth>(thread, [&](int r, int t) {
    const int64_t row = at.row + r, term = depth.begin + t;
    const bool inside = row < product.rows() && term < depth.end && product.adds(at, pass, row, term);
    tile.left[t][r / kPerThread].value[r % kPerThread] = inside ? product.left(at, pass, row, term) : 0.0F;
  });
  share_operand<Product::kRightAlongDepth>(thread, [&](int c, int t) {
    const int64_t column = at.column + c, term = depth.begin + t;
    const bool inside = column < product.columns() && term < depth.end;
    tile.right[t][c / kPerThread].value[c % kPerThread] = inside ? product.right(at, pass, term, column) : 0.0F;
  });
  if constexpr (Product::kMasked) {
    const int r = thread / (kTileDepth / 8), byte = thread % (kTileDepth / 8);
    uint32_t bits = 0;
    for (int t = 0; t < 8; ++t) {
      const int64_t row = at.row + r, term = depth.begin + byte * 8 + t;
      const bool adds = row < product.rows() && term < depth.end && product.adds(at, pass, row, term);
      bits |= adds ? 1U << t : 0U;
    }
    tile.adds[byte][r / kPerThread].value[r % kPerThread] = static_cast<uint8_t>(bits);
  }
}

template <bool kMasked>
ATTEST_HOST_DEVICE void add_term(const Quad& left, const Quad& right, const QuadBits& adds, int bit, Sums& sums) {
  for (int r = 0; r < kPerThread; ++r) {
    const bool on = !kMasked || (adds.value[r] >> bit & 1) != 0;
    for (int c = 0; c < kPerThread; ++c) {
      const float sum = sums.of[r][c] + left.value[r] * right.value[c];
      sums.of[r][c] = on ? sum : sums.of[r][c];
    }
  }
}

template <bool kMasked>
ATTEST_HOST_DEVICE void multiply_tile(const ProductTile& tile, int thread, Sums& sums) {
  const int rows = thread / kTileThreads, columns = thread % kTileThreads;
  for (int byte = 0; byte < kTileDepth / 8; ++byte) {
    const QuadBits adds = kMasked ? tile.adds[byte][rows] : QuadBits{};
    unrolled(std::make_integer_sequence<int, 8>(), [&](int t) {
      add_term<kMasked>(tile.left[byte * 8 + t][rows], tile.right[byte * 8 + t][columns], adds, t, sums);
    });
  }
}

template <class Product>
ATTEST_HOST_DEVICE void store_tile(const Product& product, const TileAt& at, int thread, const Sums& sums) {
  const int64_t row = at.row + thread / kTileThreads * kPerThread, column = at.column + thread % kTileThreads * kPerThread;
  for (int r = 0; r < kPerThread; ++r)
    for (int c = 0; c < kPerThread; ++c)
      if (row + r < product.rows() && column + c < product.columns()) product.store(at, row + r, column + c, sums.of[r][c]);
}

/// Tile number `index` of the product. A product may have several passes (the heads of a group), summed one after another.
template <class Block, class Product>
ATTEST_HOST_DEVICE void run_tile(Block& block, const Product& product, ProductTile& tile, int64_t index) {
  const TileAt at = locate(product, index);
  block.each([&](int, Sums& sums) { sums = Sums{}; });
  for (int64_t pass = 0; pass < product.passes(); ++pass) {
    DepthRange depth = product.depth(at);
    for (; depth.begin < depth.end; depth.begin += kTileDepth) {
      block.each([&](int thread, Sums&) { load_tile(product, at, pass, depth, thread, tile); });
      block.each([&](int thread, Sums& sums) {
        if (at.row + thread / kTileThreads * kPerThread < product.rows()) multiply_tile<Product::kMasked>(tile, thread, sums);
      });
    }
  }
  block.each([&](int thread, Sums& sums) { store_tile(product, at, thread, sums); });
}

}  // namespace attest::fixed_order
