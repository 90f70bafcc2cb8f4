// Reductions: sum, max, mean, arg-max over some axes.
#pragma once

#include <cstdint>
#include <string_view>

#include "primitives/shape/shape.h"
#include "primitives/status/status.h"

namespace tenon::infer {

// `dims` with the axes of bit mask `axes` (see axis_mask) gone, or 1 where `keep_dims`.
Dims reduce(const Dims& dims, uint32_t axes, bool keep_dims);

// How many elements are reduced to one result.
int64_t reduced_count(const Dims& dims, uint32_t axes);

// Refuses to reduce an axis of length 0. For ops whose result has no value there (max, min, arg-max).
Status require_elements(std::string_view op, const Dims& dims, uint32_t axes);

}  // namespace tenon::infer
