// Shapes and places of the tiles of fixed_order_tile.h. A product says its rows, columns, heads and passes; tiles are numbered
// with the column fastest, then the row, the head, the batch element.
#pragma once

#include <cstdint>

#include "kernels/device/cooperative.h"

namespace attest::fixed_order {

inline constexpr int kTile = 64;         // rows, and columns
inline constexpr int kTileDepth = 32;    // terms held in shared memory at a time
inline constexpr int kPerThread = 4;     // a thread owns 4 × 4 elements
inline constexpr int kTileThreads = kTile / kPerThread;  // per row of threads

struct alignas(16) Quad {
  float value[kPerThread];
};
struct alignas(4) QuadBits {
  uint8_t value[kPerThread];
};

struct ProductTile {
  Quad left[kTileDepth][kTileThreads + 1];  // [t][row / 4]
  Quad right[kTileDepth][kTileThreads + 1];
  QuadBits adds[kTileDepth / 8][kTileThreads];  // bit t mod 8 of [t / 8][row / 4]: the term is added
};

struct Sums {
  float of[kPerThread][kPerThread];
};

/// A tile's place. `head` counts query heads or KV heads, as the product does.
struct TileAt {
  int64_t batch, head, row, column;
};
struct DepthRange {
  int64_t begin, end;
};

ATTEST_HOST_DEVICE inline int64_t tiles_of(int64_t n) { return (n + kTile - 1) / kTile; }

template <class Product>
ATTEST_HOST_DEVICE int64_t count_tiles(const Product& product) {
  return product.params.batch * product.heads() * tiles_of(product.rows()) * tiles_of(product.columns());
}

template <class Product>
ATTEST_HOST_DEVICE TileAt locate(const Product& product, int64_t index) {
  const int64_t columns = tiles_of(product.columns()), rows = tiles_of(product.rows());
  const int64_t head = index / (columns * rows);
  return {head / product.heads(), head % product.heads(), index / columns % rows * kTile, index % columns * kTile};
}

}  // namespace attest::fixed_order
