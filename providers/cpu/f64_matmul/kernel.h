// The kernel of a block of a product over f64, per dispatch target.
#pragma once

#include <algorithm>
#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// The greatest block that fits the cache of a core with its packed factors.
inline constexpr int64_t f64_block_rows = 192;
inline constexpr int64_t f64_block_columns = 256;
inline constexpr int64_t f64_block_depth = 192;
inline constexpr int64_t f64_tile_rows = 6;
inline constexpr int64_t f64_widest_tile = 16;  // columns
// Doubles of room that a block of m x n needs for its packed factors, with the edges filled up, on one thread. The
// strips of b come first.
inline int64_t f64_room_of_b(int64_t n, int64_t k) {
  return ((n + f64_widest_tile) * std::min(k, f64_block_depth) + 7) / 8 * 8;
}
inline int64_t f64_room(int64_t m, int64_t n, int64_t k) {
  return f64_room_of_b(n, k) + ((m + 8) * std::min(k, f64_block_depth) + 7) / 8 * 8;
}

// c = a * b for a block of c, at most f64_block_rows x f64_block_columns; strides are in elements. `room` holds
// f64_room(m, n, k) doubles at an address that is a multiple of 64.
struct F64Block {
  const double* a;
  const double* b;
  double* c;
  int64_t m, n, k;
  int64_t a_row, a_column, b_row, b_column, c_row, c_column;
};

using F64BlockKernel = void (*)(const F64Block& block, double* room);

F64BlockKernel f64_block_kernel(SimdLevel level);

}  // namespace tenon::provider::cpu
