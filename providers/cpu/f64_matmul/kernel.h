// The kernel that computes a block of an f64 product, per dispatch target.
#pragma once

#include <algorithm>
#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// The largest block whose packed factors fit the cache of a core.
inline constexpr int64_t f64_block_rows = 192;
inline constexpr int64_t f64_block_columns = 256;
inline constexpr int64_t f64_block_depth = 192;
inline constexpr int64_t f64_tile_rows = 6;
inline constexpr int64_t f64_widest_tile = 16;  // columns
// The doubles of workspace that one thread needs for the packed factors of a block of m x n, with padded edges. The
// strips of b are first.
inline int64_t f64_room_of_b(int64_t n, int64_t k) {
  return ((n + f64_widest_tile) * std::min(k, f64_block_depth) + 7) / 8 * 8;
}
inline int64_t f64_room(int64_t m, int64_t n, int64_t k) {
  return f64_room_of_b(n, k) + ((m + 8) * std::min(k, f64_block_depth) + 7) / 8 * 8;
}

// c = a * b for a block of c of at most f64_block_rows x f64_block_columns. Strides are in elements. `room` holds
// f64_room(m, n, k) doubles, aligned to 64 bytes.
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
