// Transposes tiles of elements, transposes a few columns and reverses rows, with vectors, per dispatch target.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// Side of a tile, chosen so that the tile fits in half of an L1 cache and its rows fill whole cache lines.
template <class T>
inline constexpr int64_t tile_side = sizeof(T) == 8 ? 32 : 64;

// dst[i * dst_stride + j] = src[j * src_stride + i] for i < rows and j < columns.
using TileFunction = void (*)(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t rows,
                              int64_t columns);

// For elements of 1, 2, 4 or 8 bytes.
TileFunction tile_function(SimdLevel level, int32_t size);

// Transposes between n rows of a few columns each, which follow each other like pixels, and columns. Both members are
// NULL unless there are 2 to 4 columns.
struct FewColumns {
  // dst[i * columns + j] = src[j * src_stride + i] for i < n and all columns.
  void (*interleave)(void* dst, const void* src, int64_t src_stride, int64_t n) = nullptr;
  // dst[j * dst_stride + i] = src[i * columns + j] for i < n and all columns.
  void (*separate)(void* dst, int64_t dst_stride, const void* src, int64_t n) = nullptr;
};

// For elements of 1, 2, 4 or 8 bytes.
FewColumns few_columns(SimdLevel level, int32_t size, int64_t columns);

// The largest strip: elements along a column of the source, and columns, which fill one cache line, or two for elements
// of 4 or 8 bytes.
inline constexpr int64_t strip_side = 128;
template <class T>
inline constexpr int64_t strip_columns = (sizeof(T) >= 4 ? 128 : 64) / sizeof(T);

// Transposes past the cache: dst[i * dst_stride + j] = src[j * src_stride + i] for i < rows. The rows have a multiple
// of 16 bytes, and j fills lines of 64 bytes. The rows of dst are aligned to 64 bytes. The writing thread calls
// store_fence before another thread reads dst. Both members are NULL if the level has no vectors.
struct StreamTiles {
  // Writes rows of one cache line.
  void (*tile)(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t rows) = nullptr;
  // Writes rows of one or two cache lines. First copies the columns of src, so that columns that map to few sets of the
  // L1 cache are fast too. Prefetches the next strip, at `next`.
  void (*strip)(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t rows, int64_t columns,
                const void* next) = nullptr;
};

StreamTiles stream_tiles(SimdLevel level, int32_t size);

// row[i] = last[-i] for i < n.
using ReverseFunction = void (*)(void* row, const void* last, int64_t n);

// For elements of 1, 2, 4 or 8 bytes.
ReverseFunction reverse_function(SimdLevel level, int32_t size);

}  // namespace tenon::provider::cpu
