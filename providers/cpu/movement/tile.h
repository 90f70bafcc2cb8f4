// Transposes tiles of elements, and reverses rows of them, by vectors, per dispatch target.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// A tile fits into half of a first cache, and its rows fill whole lines.
template <class T>
inline constexpr int64_t tile_side = sizeof(T) == 8 ? 32 : 64;

// dst[i * dst_stride + j] = src[j * src_stride + i] of `rows` i and `columns` j.
using TileFunction = void (*)(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t rows,
                              int64_t columns);

// Of elements of 1, 2, 4 or 8 bytes.
TileFunction tile_function(SimdLevel level, int32_t size);

// The greatest strip: elements along a column of the source, and columns, which fill one line, of wide elements two.
inline constexpr int64_t strip_side = 128;
template <class T>
inline constexpr int64_t strip_columns = (sizeof(T) >= 4 ? 128 : 64) / sizeof(T);

// Tiles past the cache: dst[i * dst_stride + j] = src[j * src_stride + i] of `rows` i, whose bytes are a multiple of
// 16, and of j that fill lines of 64 bytes. The rows of dst are aligned to 64 bytes. The writing thread calls
// store_fence before another one reads them. Both are NULL where the level has no vectors.
struct StreamTiles {
  // One line wide.
  void (*tile)(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t rows) = nullptr;
  // One or two lines wide. Copies the columns of src first, so that it also suits those that meet in few sets of the
  // first cache, and asks for the strip of src that begins at `next`.
  void (*strip)(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t rows, int64_t columns,
                const void* next) = nullptr;
};

StreamTiles stream_tiles(SimdLevel level, int32_t size);

// row[i] = last[-i] for i < n.
using ReverseFunction = void (*)(void* row, const void* last, int64_t n);

// Of elements of 1, 2, 4 or 8 bytes.
ReverseFunction reverse_function(SimdLevel level, int32_t size);

}  // namespace tenon::provider::cpu
