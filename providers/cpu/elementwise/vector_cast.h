// Casts of contiguous elements by vectors, per dispatch target. convert.h chooses them.
#pragma once

#include "providers/cpu/elementwise/convert.h"

namespace tenon::provider::cpu {

// Converts from dtype `from` to `to`, with vectors where both strides are 1. NULL: there is none, or not on this level.
ConvertFunction vector_cast(SimdLevel level, int32_t from, int32_t to);

}  // namespace tenon::provider::cpu
