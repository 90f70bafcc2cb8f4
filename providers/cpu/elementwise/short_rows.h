// Copies of rows of a few elements, with vectors, per dispatch target.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// Strides are in elements; `dst` and `src` do not overlap.
struct ShortRows {
  // dst[i * length + j] = src[i * src_stride] for i < n and j < length.
  void (*repeat)(void* dst, const void* src, int64_t src_stride, int64_t n, int64_t length) = nullptr;
  // dst[i * dst_stride + j] = src[i * src_stride + j] for i < n and j < length. If the rows of `dst` follow each other,
  // reads elements between the rows of `src` too.
  void (*move)(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t n, int64_t length) = nullptr;
};

// For elements of 1, 2, 4 or 8 bytes.
ShortRows short_rows(SimdLevel level, int32_t size);

}  // namespace tenon::provider::cpu
