// Vectorised casts and fills of contiguous elements, per dispatch target. convert.h chooses among them.
#pragma once

#include "providers/cpu/elementwise/convert.h"

namespace tenon::provider::cpu {

// Two conversions between the same types. Both are NULL if the pair or the level has none.
struct VectorCast {
  ConvertFunction convert = nullptr;  // uses vectors if both strides are 1
  // Converts n elements past the cache. The writing thread calls store_fence before another thread reads them.
  void (*stream)(void* dst, const void* src, int64_t n) = nullptr;
};
VectorCast vector_cast(SimdLevel level, int32_t from, int32_t to);

// Sets dst[i], i < n, to one element of `size` bytes (1, 2, 4 or 8). NULL if the level has none.
using FillFunction = void (*)(void* dst, const void* value, int64_t n);
FillFunction vector_fill(SimdLevel level, int32_t size);

}  // namespace tenon::provider::cpu
