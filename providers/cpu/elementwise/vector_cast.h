// Casts and fills of contiguous elements by vectors, per dispatch target. convert.h chooses them.
#pragma once

#include "providers/cpu/elementwise/convert.h"

namespace tenon::provider::cpu {

// Two conversions between the same types; both are NULL if there is none, or not on this level.
struct VectorCast {
  ConvertFunction convert = nullptr;  // with vectors where both strides are 1
  // Converts n elements past the cache. The writing thread calls store_fence before another thread reads them.
  void (*stream)(void* dst, const void* src, int64_t n) = nullptr;
};
VectorCast vector_cast(SimdLevel level, int32_t from, int32_t to);

// Fills dst[i] with one element of `size` bytes, 1, 2, 4 or 8, for i < n. NULL: not on this level.
using FillFunction = void (*)(void* dst, const void* value, int64_t n);
FillFunction vector_fill(SimdLevel level, int32_t size);

}  // namespace tenon::provider::cpu
