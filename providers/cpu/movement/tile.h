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

// Tiles past the cache: dst[i * dst_stride + j] = src[j * src_stride + i] of `rows` i, whose bytes are a multiple of
// 16, and the j that fill 64 bytes. The rows of dst are aligned to 64 bytes. The writing thread calls store_fence
// before another one reads them. Both are NULL where the level has no vectors.
struct StreamTiles {
  void (*tile)(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t rows) = nullptr;
  // At most strip_side rows. Copies the columns of src first, so that it also suits those that meet in few sets of the
  // first cache, and asks for the tile of src that begins at `next`.
  void (*strip)(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t rows,
                const void* next) = nullptr;
};
inline constexpr int64_t strip_side = 128;

StreamTiles stream_tiles(SimdLevel level, int32_t size);

// row[i] = last[-i] for i < n.
using ReverseFunction = void (*)(void* row, const void* last, int64_t n);

// Of elements of 1, 2, 4 or 8 bytes.
ReverseFunction reverse_function(SimdLevel level, int32_t size);

}  // namespace tenon::provider::cpu
