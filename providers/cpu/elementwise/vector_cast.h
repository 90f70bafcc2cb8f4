// Casts and fills of contiguous elements by vectors, per dispatch target. convert.h chooses them.
#pragma once

#include "providers/cpu/elementwise/convert.h"

namespace tenon::provider::cpu {

// Converts from dtype `from` to `to`, with vectors where both strides are 1. NULL: there is none, or not on this level.
ConvertFunction vector_cast(SimdLevel level, int32_t from, int32_t to);

// Fills dst[i] with one element of `size` bytes, 1, 2, 4 or 8, for i < n. NULL: not on this level.
using FillFunction = void (*)(void* dst, const void* value, int64_t n);
FillFunction vector_fill(SimdLevel level, int32_t size);

}  // namespace tenon::provider::cpu
