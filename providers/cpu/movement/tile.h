// Transposes tiles of elements, and reverses rows of them, by vectors, per dispatch target.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

inline constexpr int64_t tile_side = 32;

// row[i * tile_side + j] = src[j * src_stride + i] of `rows` i and `columns` j, at most tile_side each.
using TileFunction = void (*)(void* row, const void* src, int64_t src_stride, int64_t rows, int64_t columns);

// Of elements of 1, 2, 4 or 8 bytes.
TileFunction tile_function(SimdLevel level, int32_t size);

// row[i] = last[-i] for i < n.
using ReverseFunction = void (*)(void* row, const void* last, int64_t n);

// Of elements of 1, 2, 4 or 8 bytes.
ReverseFunction reverse_function(SimdLevel level, int32_t size);

}  // namespace tenon::provider::cpu
